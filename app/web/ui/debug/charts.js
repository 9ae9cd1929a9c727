import { html } from "../../vendor/preact-htm.js";
import { money, time, tone } from "../../lib/figures.js";
import { count, visible } from "../../lib/text.js";

const HOUR = 3_600_000;

/** What the listed runs come to, in all and over time. A click on a time or an outcome lists its runs.
 * @param {{figures: any, choose: (chosen: Record<string, string>) => void, outcome?: string}} props */
export function Charts({ figures, choose, outcome }) {
  const { total, days, cut } = figures;
  const step = days ? 24 * HOUR : HOUR;
  const since = Date.parse(figures.since);
  const slots = Math.max(1, Math.ceil((Date.parse(figures.until) - since) / step));
  /** @type {{place: number, label: string, period: any}[]} */
  const bars = figures.periods.map((period) => ({ place: Math.round((Date.parse(period.start) - since) / step), label: name(period, days), period }));
  const open = ({ period }) => {
    const start = new Date(period.start);
    // The middle of a day is on that day even where the clock was changed.
    if (days) choose({ since: "dates", from: day(new Date(+start + 12 * HOUR)), to: day(new Date(+start + 12 * HOUR)) });
    else choose({ since: "dates", from: start.toISOString(), to: new Date(+start + HOUR).toISOString() });
  };
  const facts = [count(total.runs, "run"), total.p50_ms === null ? "" : `half within ${time(total.p50_ms)}`, total.p95_ms === null ? "" : `95 % within ${time(total.p95_ms)}`, money(total.cost), cut ? "the latest ones alone" : ""].filter(Boolean);
  const shared = { bars, slots, open };
  return html`
    <section class="card charts" aria-label="In figures">
      <p class="dots">${facts.map((fact) => html`<span key=${fact}>${fact}</span>`)}</p>
      <div class="outcomes" role="group" aria-label="How they ended">
        ${Object.entries(total.outcomes).sort(([, one], [, other]) => other - one).map(([each, runs]) => html`
          <button type="button" key=${each} class="badge ${colour(each)}" aria-pressed=${each === outcome} onClick=${() => choose({ outcome: each === outcome ? "" : each })}>${visible(each.replaceAll("_", " "))} ${runs}</button>`)}
      </div>
      <div class="chart-row">
        <${Chart} ...${shared} name="Runs" most=${count} measure=${({ outcomes }) => stack(outcomes)} />
        <${Chart} ...${shared} name="Time" most=${time} measure=${({ p50_ms, p95_ms }) => [["now", p50_ms ?? 0], ["faint", Math.max(0, (p95_ms ?? 0) - (p50_ms ?? 0))]]} />
        ${total.cost > 0 && html`<${Chart} ...${shared} name="Cost" most=${money} measure=${({ cost }) => [["now", cost]]} />`}
      </div>
    </section>`;
}

/** One row of bars; each bar in parts, from below.
 * @param {{name: string, bars: any[], slots: number, open: (bar: any) => void, most: (value: number, word: string) => string, measure: (period: any) => [string, number][]}} props */
function Chart({ name: title, bars, slots, open, most, measure }) {
  const measured = bars.map((bar) => ({ ...bar, parts: measure(bar.period) }));
  const highest = Math.max(...measured.map(({ parts }) => add(parts)), 0);
  return html`
    <figure class="chart">
      <figcaption class="soft">${title}, at most ${most(highest, "run")}</figcaption>
      <svg viewBox="0 0 ${slots} 40" preserveAspectRatio="none" role="group" aria-label="${title} over time">
        ${measured.map(({ parts, ...bar }, number) => {
          let top = 40;
          return html`
            <g key=${bar.place} class="period" data-period=${bar.period.start} role="button" aria-label=${bar.label} tabindex=${number ? -1 : 0}
              onClick=${() => open(bar)} onKeyDown=${(event) => press(event, () => open(bar))}>
              <title>${bar.label}</title>
              <rect class="ground" x=${bar.place} y="0" width="1" height="40" />
              ${parts.filter(([, value]) => value > 0).map(([kind, value]) => {
                const height = highest ? Math.max((38 * value) / highest, 0.5) : 0;
                top -= height;
                return html`<rect key=${kind} class=${kind} x=${bar.place + 0.08} y=${top} width=".84" height=${height} />`;
              })}
            </g>`;
        })}
      </svg>
    </figure>`;
}

/** Tab leads to the first bar of a row, the arrows to the others. @param {any} event @param {() => void} open */
function press(event, open) {
  const { key, currentTarget: bar } = event;
  if (key === "Enter" || key === " ") open();
  else if (key === "ArrowRight") bar.nextElementSibling?.focus();
  else if (key === "ArrowLeft") bar.previousElementSibling?.focus();
  else return;
  event.preventDefault();
}

/** @param {[string, number][]} parts */
const add = (parts) => parts.reduce((sum, [, value]) => sum + value, 0);

/** An outcome, or the error of a run that has none. @param {string} name */
const colour = (name) => tone(OUTCOMES.includes(name) || name === "stopped" ? { outcome: name, error: null } : { outcome: null, error: name });

export const OUTCOMES = ["answered", "answered_with_caveat", "showed_passages", "abstained", "asked_back", "declined", "conversed"];

/** The outcomes of a time as good, so-so and bad. @param {Record<string, number>} outcomes @returns {[string, number][]} */
function stack(outcomes) {
  /** @type {Record<string, number>} */
  const kinds = { good: 0, warn: 0, bad: 0 };
  for (const [name, runs] of Object.entries(outcomes)) kinds[colour(name)] += runs;
  return Object.entries(kinds);
}

/** @param {any} period @param {boolean} days */
function name({ start, runs, outcomes, p50_ms, p95_ms, cost }, days) {
  const when = new Date(Date.parse(start) + (days ? 12 * HOUR : 0)).toLocaleString("en", days ? { weekday: "short", day: "numeric", month: "short" } : { weekday: "short", hour: "2-digit", minute: "2-digit" });
  const ended = Object.entries(outcomes).map(([each, number]) => `${number} ${each.replaceAll("_", " ")}`).join(", ");
  return `${when}: ${count(runs, "run")} (${ended}), p50 ${time(p50_ms)}, p95 ${time(p95_ms)}, ${money(cost)}`;
}

/** A day as the field of a form holds it, where the reader is. @param {Date} date */
export const day = (date) => `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
