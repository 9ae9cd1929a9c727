import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson, sending } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { short } from "../../lib/text.js";

/** What writes and judges, what is found on the service's machine, and another to try. */
export function Models() {
  const [known, setKnown] = useState(/** @type {any} */ (null));
  const [name, setName] = useState("");
  const [trial, setTrial] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [trying, setTrying] = useState(false);
  const load = () => attempt(async () => setKnown(await fetchJson("/api/models")));
  useEffect(() => void load(), []);
  /** @param {HTMLFormElement} form @param {boolean} keep */
  const ask = async (form, keep) => {
    const given = new FormData(form);
    setTrying(true);
    setProblem("");
    setTrial(null);
    await attempt(async () => {
      const tried = { name, address: given.get("address") || null, key: given.get("key") || null, keep };
      setTrial(await fetchJson("/api/models", sending("POST", tried)));
      if (keep) await load();
    }, setProblem);
    setTrying(false);
  };
  if (!known) return null;
  const used = Object.entries(known.used);
  const none = (model) => ["none", "local"].includes(model);
  return html`
    <section>
      <h2>${phrase("models.title")}</h2>
      <ul>
        ${used.map(([does, model]) => html`<li key=${does}>${names()[does]}: <bdi>${none(model) ? phrase("models.here") : short(model, 100)}</bdi></li>`)}
        ${!used.length && html`<li>${phrase("models.none")}</li>`}
        ${known.chosen && known.chosen !== known.used.writes && html`<li>${phrase("models.next", { name: short(known.chosen, 100) })}</li>`}
      </ul>
      <form class="models" onSubmit=${(event) => { event.preventDefault(); ask(event.currentTarget, false); }}>
        <label>${phrase("models.name")}<input name="name" required maxlength="200" list="found-models" value=${name} onInput=${(event) => setName(event.currentTarget.value)} placeholder="ollama:qwen3:8b" /></label>
        <datalist id="found-models">${known.found.flatMap((server) => server.models.map((model) => html`<option key=${model} value="${server.kind}:${model}" />`))}</datalist>
        <label>${phrase("models.address")}<input name="address" type="url" maxlength="2000" placeholder="https://…/v1" /></label>
        <label>${phrase("models.key")}<input name="key" type="password" autocomplete="off" maxlength="2000" /></label>
        <p class="row-actions">
          <button type="submit" disabled=${trying}>${phrase(trying ? "models.trying" : "models.try")}</button>
          ${trial && !trial.writes.problem && html`<button type="button" class="main" disabled=${trying} onClick=${(event) => ask(event.currentTarget.form, true)}>${phrase("models.use")}</button>`}
        </p>
        <p class="wrong" role="alert">${problem}</p>
        ${trial && html`<div role="status"><ul>${["writes", "judges", "calls"].map((does) => html`<li key=${does}>${tell(does, trial[does])}</li>`)}</ul></div>`}
      </form>
      <p class="soft">${phrase("models.how")}</p>
    </section>`;
}

/** @type {() => Record<string, string>} */
const names = () => ({ writes: phrase("models.writes"), judges: phrase("models.judges"), verifies: phrase("models.verifies"), calls: phrase("models.calls") });

/** @param {string} does @param {{problem: string | null, seconds: number}} attempted */
function tell(does, { problem, seconds }) {
  const name = names()[does];
  return problem ? `${name}: ${short(problem, 300)}` : phrase("models.works", { name, seconds: seconds.toFixed(1) });
}
