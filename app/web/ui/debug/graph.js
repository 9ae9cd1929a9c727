import { html } from "../../vendor/preact-htm.js";
import { time } from "../../lib/figures.js";

/** @typedef {{nodes: Record<string, {times: number, ms: number, step: string, now: boolean}>, ways: Set<string>}} Visits */

/** The graph, with the way that the run took.
 * @param {{graph: any, visits: Visits, chosen: string | undefined, parts: string | null, choose: (step: string) => void}} props */
export function Graph({ graph, visits, chosen, parts, choose }) {
  const taken = ({ source, target }) => visits.ways.has(`${source} ${target}`);
  const ordered = [...graph.edges].sort((one, other) => Number(taken(one)) - Number(taken(other)));
  return html`
    <svg class="graph card" viewBox="0 0 ${graph.width} ${graph.height}" role="group" aria-label="Graph">
      <defs>
        ${["", "taken"].map((kind) => html`
          <marker key=${kind} id="head${kind}" class="head ${kind}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8Z" /></marker>`)}
      </defs>
      ${ordered.map((edge) => html`
        <path key=${`${edge.source} ${edge.target} ${edge.label}`} class="edge ${taken(edge) ? "taken" : ""}" d=${draw(edge.points)} marker-end="url(#head${taken(edge) ? "taken" : ""})">
          <title>${edge.source} → ${edge.target}${edge.label ? `: ${edge.label}` : ""}</title></path>`)}
      ${graph.steps.map((step) => html`<${Node} key=${step.name} step=${step} visit=${visits.nodes[step.name]} chosen=${chosen === step.name} parts=${parts === step.name} choose=${choose} />`)}
    </svg>`;
}

/** @param {{step: any, visit: Visits["nodes"][string] | undefined, chosen: boolean, parts: boolean, choose: (step: string) => void}} props */
function Node({ step: { name, x, y, width, height }, visit, chosen, parts, choose }) {
  const open = visit?.step;
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (open) choose(open);
  };
  const told = visit && (visit.now ? "now" : time(visit.ms));
  const often = visit && visit.times > 1 ? visit.times : 0;
  const kind = ["node", visit && "visited", visit?.now && "now", chosen && "chosen", parts && "parts"].filter(Boolean).join(" ");
  const pressed = open ? { role: "button", tabindex: 0, "aria-label": `${name}, ${told}${often ? `, ${often} times` : ""}`, onClick: () => choose(open), onKeyDown: press } : { "aria-hidden": "true" };
  return html`
    <g class=${kind} data-node=${name} ...${pressed}>
      <rect x=${x - width / 2} y=${y - height / 2} width=${width} height=${height} rx="8" />
      <text x=${x} y=${told ? y - 2 : y + 6}>${name}</text>
      ${told && html`<text class="small" x=${x} y=${y + 14}>${told}</text>`}
      ${often > 0 && html`<circle cx=${x + width / 2 + 5} cy=${y - height / 2} r="11" /><text class="times" x=${x + width / 2 + 5} y=${y - height / 2 + 5}>${often}×</text>`}
    </g>`;
}

/** The line through the points, with rounded corners. @param {[number, number][]} points */
function draw(points) {
  const [first, ...rest] = points;
  let line = `M${first}`;
  rest.forEach((point, place) => {
    const after = rest[place + 1];
    if (!after) line += `L${point}`;
    else line += `L${between(place ? rest[place - 1] : first, point, 0.75)}Q${point} ${between(point, after, 0.25)}`;
  });
  return line;
}

/** @param {[number, number]} a @param {[number, number]} b @param {number} share */
const between = (a, b, share) => [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share];
