import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson } from "../../lib/api.js";
import { dollars, language, phrase } from "../../lib/language.js";
import { short } from "../../lib/text.js";

/** What has been asked in a workspace in the last 30 days, and what it has cost, by day, person, mode or model.
 * @param {{workspaces: {id: string}[], names: Record<string, string>}} props `names` are those of callers */
export function Usage({ workspaces, names }) {
  const [workspace, setWorkspace] = useState("default");
  const [by, setBy] = useState("day");
  const [report, setReport] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let gone = false;
    attempt(async () => {
      const found = await fetchJson(`/api/costs?${new URLSearchParams({ by, since: "30d", workspace })}`);
      if (!gone) setReport(found);
    });
    return () => { gone = true; };
  }, [workspace, by]);
  if (!report) return null;
  const isDay = report.by === "day";
  const rows = isDay ? [...report.costs].sort((one, other) => (one.name < other.name ? 1 : -1)) : report.costs;
  const ways = [["day", phrase("usage.day")], ["caller", phrase("usage.person")], ["mode", phrase("composer.mode")], ["model", phrase("usage.model")]];
  const columns = [ways.find(([way]) => way === report.by)?.[1], phrase("usage.questions"), phrase("usage.cached"), phrase("usage.tokens"), phrase("usage.cost")];
  const write = (name) => (isDay ? new Date(name).toLocaleDateString(language, { dateStyle: "medium", timeZone: "UTC" }) : short(names[name] ?? name ?? phrase("usage.no_model"), 100));
  return html`
    <section>
    <h2>${phrase("usage.title")}</h2>
    <p class="row">
      ${workspaces.length > 1 && html`<${Choice} label=${phrase("app.workspace")} value=${workspace} choose=${setWorkspace} options=${workspaces.map(({ id }) => [id, id])} />`}
      <${Choice} label=${phrase("usage.by")} value=${by} choose=${setBy} options=${ways} /></p>
    ${rows.length === 0 ? html`<p class="soft">${phrase("usage.none")}</p>` : html`
      <div class="table" tabindex="0" role="group" aria-label=${phrase("usage.title")}><table class="figures">
        <thead><tr>${columns.map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
        <tbody>${rows.map((each) => html`<${Row} key=${each.name} name=${write(each.name)} spent=${each} />`)}
          ${rows.length > 1 && html`<${Row} name=${phrase("usage.total")} spent=${report.total} />`}</tbody>
      </table></div>
      ${report.total.unpriced > 0 && html`<p class="soft">${phrase("usage.unpriced", { count: report.total.unpriced })}</p>`}`}
    </section>`;
}

/** @param {{label: string, value: string, choose: (value: string) => void, options: string[][]}} props */
const Choice = ({ label, value, choose, options }) => html`
  <label>${label} <select onChange=${(event) => choose(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
    ${options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}</select></label>`;

/** @param {{name: string, spent: any}} props */
const Row = ({ name, spent }) => html`
  <tr><th scope="row"><bdi>${name}</bdi></th>
    ${[spent.runs, spent.cached, spent.input_tokens + spent.output_tokens].map((figure, place) => html`<td key=${place}>${figure.toLocaleString(language)}</td>`)}
    <td>${spent.cost ? dollars(spent.cost) : "–"}</td></tr>`;
