import { html, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson, request, sending } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { short } from "../../lib/text.js";
import { Dialog, readNames } from "../dialog.js";

const RIGHTS = ["ask", "ingest", "debug", "admin"];

/** Makes a key, or changes one. The first key is that of whoever makes it, and may do everything.
 * @param {{item: Key | null, isFirst: boolean, close: () => void}} props */
export function KeyDialog({ item, isFirst, close }) {
  const [made, setMade] = useState("");
  const [problem, setProblem] = useState("");
  /** @param {() => Promise<void>} act */
  const dare = (act) => attempt(act, setProblem);
  /** @param {FormData} form */
  const save = (form) => dare(async () => {
    const key = isFirst ? { name: form.get("name"), rights: RIGHTS } : readKey(form);
    if (item) {
      await fetchJson(`/api/keys/${encodeURIComponent(item.key_id)}`, sending("PUT", key));
      close();
    } else {
      setMade((await fetchJson("/api/keys", sending("POST", { ...key, expires: form.get("expires") || null }))).key);
      setProblem("");
    }
  });
  if (made) return html`<${Made} secret=${made} isFirst=${isFirst} close=${close} problem=${problem} dare=${dare} />`;
  const title = phrase(isFirst ? "keys.make_first" : item ? "keys.change" : "keys.make");
  return html`
    <${Dialog} title=${item ? `${title}: ${short(item.name, 60)}` : title} submit=${save} close=${close}>
      <label>${phrase("keys.whose")}<input name="name" required maxlength="200" defaultValue=${item?.name ?? ""} autofocus /></label>
      ${isFirst ? html`<p class="soft">${phrase("keys.first_rights")}</p>` : html`<${Fields} item=${item} />`}
      <p class="wrong" role="alert">${problem}</p>
      <p class="ends"><button type="button" onClick=${close}>${phrase("cancel")}</button><button type="submit" class="main">${title}</button></p>
    <//>`;
}

/** @param {{item: Key | null}} props */
function Fields({ item }) {
  const rights = [["ask", phrase("keys.may_ask")], ["ingest", phrase("keys.may_ingest")], ["debug", phrase("keys.may_debug")], ["admin", phrase("keys.may_admin")]];
  const limits = [["requests_per_minute", phrase("keys.requests")], ["runs", phrase("keys.runs")], ["tokens_per_day", phrase("keys.tokens")], ["dollars_per_day", phrase("keys.dollars")],
    ["max_documents", phrase("keys.documents")], ["max_stored_mb", phrase("keys.megabytes")]];
  const ends = [["", phrase("keys.no_end")], ["30d", phrase("keys.end", { count: 30 })], ["90d", phrase("keys.end", { count: 90 })], ["365d", phrase("keys.end", { count: 365 })]];
  return html`
    <fieldset><legend>${phrase("keys.rights")}</legend>
      ${rights.map(([name, label]) => html`<label class="check" key=${name}><input type="checkbox" name="rights" value=${name} defaultChecked=${(item?.rights ?? ["ask"]).includes(name)} /> ${label}</label>`)}
    </fieldset>
    <${Some} name="workspaces" label=${phrase("keys.some_workspaces")} names=${item?.workspaces ?? null} required=${true} />
    <${Some} name="groups" label=${phrase("keys.some_groups")} names=${item?.groups ?? null} required=${false} />
    ${!item && html`<label>${phrase("keys.ends")}<select name="expires">${ends.map(([span, label]) => html`<option key=${span} value=${span}>${label}</option>`)}</select></label>`}
    <details open=${Boolean(item && Object.values(item.limits).some((limit) => limit !== null))}><summary>${phrase("keys.limits")}</summary>
      <p class="soft">${phrase("keys.default_limits")}</p>
      ${limits.map(([name, label]) => html`<label key=${name}>${label}<input type="number" name=${name} min=${name.endsWith("day") ? 0 : 1} step=${name === "dollars_per_day" ? "any" : 1} defaultValue=${item?.limits[name] ?? ""} /></label>`)}
    </details>`;
}

/** Names that narrow a key down, where it is narrowed down. None of them is not the same as all.
 * @param {{name: string, label: string, names: string[] | null, required: boolean}} props */
function Some({ name, label, names, required }) {
  const [some, setSome] = useState(names !== null);
  return html`
    <label class="check"><input type="checkbox" name="some_${name}" checked=${some} onChange=${() => setSome(!some)} /> ${label}</label>
    ${some && html`<input name=${name} aria-label=${label} placeholder=${phrase("keys.names")} defaultValue=${names?.join(", ") ?? ""} required=${required} />`}`;
}

/** @param {FormData} form */
function readKey(form) {
  const limit = (name) => (form.get(name) ? Number(form.get(name)) : null);
  return {
    name: form.get("name"),
    rights: form.getAll("rights"),
    workspaces: form.has("some_workspaces") ? readNames(form.get("workspaces")) : null,
    groups: form.has("some_groups") ? readNames(form.get("groups")) : null,
    requests_per_minute: limit("requests_per_minute"),
    runs: limit("runs"),
    tokens_per_day: limit("tokens_per_day"),
    dollars_per_day: limit("dollars_per_day"),
    max_documents: limit("max_documents"),
    max_stored_mb: limit("max_stored_mb"),
  };
}

/** Shows the secret of a new key, this once. The first one has to be used at once: nobody gets in without it.
 * @param {{secret: string, isFirst: boolean, close: () => void, problem: string, dare: (act: () => Promise<void>) => void}} props */
function Made({ secret, isFirst, close, problem, dare }) {
  const [copied, setCopied] = useState(false);
  const done = () => {
    if (!isFirst) return close();
    dare(async () => {
      await request("/api/session", sending("POST", { key: secret }));
      location.reload();
    });
  };
  const copy = async (event) => {
    // Outside localhost and https there is no clipboard; the key is then selected, ready to copy.
    getSelection()?.selectAllChildren(/** @type {HTMLElement} */ (event.currentTarget).previousElementSibling ?? document.body);
    await navigator.clipboard?.writeText(secret).catch(() => {});
    setCopied(true);
  };
  return html`
    <${Dialog} key="made" title=${phrase("keys.made")} submit=${done} close=${close}>
      <p>${phrase("keys.once")}</p>
      <p><code class="secret">${secret}</code> <button type="button" autofocus onClick=${copy}>${phrase(copied ? "actions.copied" : "keys.copy")}</button></p>
      ${isFirst && html`<p>${phrase("keys.closed")}</p>`}
      <p class="wrong" role="alert">${problem}</p>
      <p class="ends"><button type="submit" class="main">${phrase(isFirst ? "keys.go_on" : "keys.kept")}</button></p>
    <//>`;
}
