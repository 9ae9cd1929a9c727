import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson } from "../../lib/api.js";
import { dollars, language, phrase } from "../../lib/language.js";

/** What has been asked in a workspace in the last 30 days, and what it has cost, by day. */
export function Usage() {
  const [workspaces, setWorkspaces] = useState(/** @type {string[]} */ ([]));
  const [workspace, setWorkspace] = useState("");
  const [report, setReport] = useState(/** @type {any} */ (null));
  useEffect(() => void attempt(async () => setWorkspaces((await fetchJson("/api/workspaces")).workspaces.map(({ id }) => id))), []);
  useEffect(() => {
    let gone = false;
    const query = new URLSearchParams({ by: "day", since: "30d", ...(workspace ? { workspace } : {}) });
    attempt(async () => {
      const found = await fetchJson(`/api/costs?${query}`);
      if (!gone) setReport(found);
    });
    return () => { gone = true; };
  }, [workspace]);
  if (!report) return null;
  const days = [...report.costs].sort((one, other) => (one.name < other.name ? 1 : -1));
  const columns = [phrase("usage.day"), phrase("usage.questions"), phrase("usage.cached"), phrase("usage.tokens"), phrase("usage.cost")];
  return html`
    <section>
      <h2>${phrase("usage.title")}</h2>
      ${workspaces.length > 1 && html`
        <p><label>${phrase("app.workspace")} <select onChange=${(event) => setWorkspace(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
          ${workspaces.map((id) => html`<option key=${id} value=${id} selected=${id === (workspace || "default")}>${id}</option>`)}</select></label></p>`}
      ${days.length === 0 ? html`<p class="soft">${phrase("usage.none")}</p>` : html`
        <div class="table" tabindex="0" role="group" aria-label=${phrase("usage.title")}><table class="figures">
          <thead><tr>${columns.map((name) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
          <tbody>${days.map((day) => html`<${Row} key=${day.name} name=${new Date(day.name).toLocaleDateString(language, { dateStyle: "medium", timeZone: "UTC" })} spent=${day} />`)}
            ${days.length > 1 && html`<${Row} name=${phrase("usage.total")} spent=${report.total} />`}</tbody>
        </table></div>
        ${report.total.unpriced > 0 && html`<p class="soft">${phrase("usage.unpriced", { count: report.total.unpriced })}</p>`}`}
    </section>`;
}

/** @param {{name: string, spent: any}} props */
const Row = ({ name, spent }) => html`
  <tr><th scope="row">${name}</th>
    ${[spent.runs, spent.cached, spent.input_tokens + spent.output_tokens].map((figure, place) => html`<td key=${place}>${figure.toLocaleString(language)}</td>`)}
    <td>${spent.cost ? dollars(spent.cost) : "–"}</td></tr>`;
