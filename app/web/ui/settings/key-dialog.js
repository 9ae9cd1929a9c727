import { html, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson, request, sending } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { short } from "../../lib/text.js";
import { Dialog, readNames } from "../dialog.js";

const RIGHTS = [["ask", phrase("keys.may_ask")], ["ingest", phrase("keys.may_ingest")], ["debug", phrase("keys.may_debug")], ["admin", phrase("keys.may_admin")]];
const LIMITS = [["requests_per_minute", phrase("keys.requests")], ["runs", phrase("keys.runs")], ["tokens_per_day", phrase("keys.tokens")], ["dollars_per_day", phrase("keys.dollars")],
  ["max_documents", phrase("keys.documents")], ["max_stored_mb", phrase("keys.megabytes")]];

/** Makes a key, or changes one. The first key is that of whoever makes it, and may do everything.
 * @param {{item: Key | null, isFirst: boolean, close: () => void}} props */
export function KeyDialog({ item, isFirst, close }) {
  const [made, setMade] = useState("");
  const [problem, setProblem] = useState("");
  /** @param {() => Promise<void>} act */
  const dare = (act) => attempt(act, setProblem);
  /** @param {FormData} form */
  const save = (form) => dare(async () => {
    const key = isFirst ? { name: form.get("name"), rights: RIGHTS.map(([name]) => name) } : readKey(form);
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
    <${Dialog} title=${item ? `${title}: ${short(item.name, 60)}` : title} submit=${save} close=${close} act=${title} problem=${problem}>
      <label>${phrase("keys.whose")}<input name="name" required maxlength="200" defaultValue=${item?.name ?? ""} autofocus /></label>
      ${isFirst ? html`<p class="soft">${phrase("keys.first_rights")}</p>` : html`<${Fields} item=${item} />`}
    <//>`;
}

/** @param {{item: Key | null}} props */
function Fields({ item }) {
  const ends = [["", phrase("keys.no_end")], ["30d", phrase("keys.end", { count: 30 })], ["90d", phrase("keys.end", { count: 90 })], ["365d", phrase("keys.end", { count: 365 })]];
  return html`
    <fieldset><legend>${phrase("keys.rights")}</legend>
      ${RIGHTS.map(([name, label]) => html`<label class="check" key=${name}><input type="checkbox" name="rights" value=${name} defaultChecked=${(item?.rights ?? ["ask"]).includes(name)} /> ${label}</label>`)}
    </fieldset>
    <${Some} name="workspaces" label=${phrase("keys.some_workspaces")} names=${item?.workspaces ?? null} required=${true} />
    <${Some} name="groups" label=${phrase("keys.some_groups")} names=${item?.groups ?? null} required=${false} />
    ${!item && html`<label>${phrase("keys.ends")}<select name="expires">${ends.map(([span, label]) => html`<option key=${span} value=${span}>${label}</option>`)}</select></label>`}
    <details open=${Boolean(item && Object.values(item.limits).some((limit) => limit !== null))}><summary>${phrase("keys.limits")}</summary>
      <p class="soft">${phrase("keys.default_limits")}</p>
      ${LIMITS.map(([name, label]) => html`<label key=${name}>${label}<input type="number" name=${name} min=${name.endsWith("day") ? 0 : 1} step=${name === "dollars_per_day" ? "any" : 1} defaultValue=${item?.limits[name] ?? ""} /></label>`)}
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
const readKey = (form) => ({
  name: form.get("name"), rights: form.getAll("rights"),
  workspaces: form.has("some_workspaces") ? readNames(form.get("workspaces")) : null,
  groups: form.has("some_groups") ? readNames(form.get("groups")) : null,
  ...Object.fromEntries(LIMITS.map(([name]) => [name, form.get(name) ? Number(form.get(name)) : null])),
});

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
    <${Dialog} key="made" title=${phrase("keys.made")} submit=${done} close=${close} act=${phrase(isFirst ? "keys.go_on" : "keys.kept")} final=${true} problem=${problem}>
      <p>${phrase("keys.once")}</p>
      <p><code class="secret">${secret}</code> <button type="button" autofocus onClick=${copy}>${phrase(copied ? "actions.copied" : "keys.copy")}</button></p>
      ${isFirst && html`<p>${phrase("keys.closed")}</p>`}
    <//>`;
}
