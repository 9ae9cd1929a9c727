import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson } from "../../lib/api.js";
import { dollars, language, phrase } from "../../lib/language.js";
import { ago, short } from "../../lib/text.js";
import { Confirm } from "../confirm.js";
import { KeyDialog } from "./key-dialog.js";

/** The keys: whose they are, what they open and how much. @param {{caller: any, keys: Key[], load: () => void}} props */
export function Keys({ caller, keys, load }) {
  // The key that is changed; "new" for one that is made.
  const [edited, setEdited] = useState(/** @type {Key | "new" | null} */ (null));
  const [hasProvider, setHasProvider] = useState(false);
  useEffect(() => void attempt(async () => setHasProvider((await fetchJson("/readyz")).sign_in)), []);
  const isFirst = caller.name === "owner" && !keys.length;
  const close = () => {
    setEdited(null);
    // The first key closes the service: who has not signed in with it is asked for it.
    load();
  };
  const ended = (key) => Boolean(key.revoked_at || (key.expires_at && Date.parse(key.expires_at) < Date.now()));
  const sorted = [...keys.filter((key) => !ended(key)), ...keys.filter(ended)];
  return html`
    <section>
      <h2>${phrase("keys.title")}</h2>
      ${isFirst && html`<p class="note">${phrase("keys.first")}</p>`}
      ${hasProvider && html`<p class="soft">${phrase("keys.provider")}</p>`}
      <p><button type="button" class="main" onClick=${() => setEdited("new")}>${phrase(isFirst ? "keys.make_first" : "keys.make")}</button></p>
      ${keys.length > 0 && html`
        <div class="table" tabindex="0" role="group" aria-label=${phrase("keys.title")}><table>
          <thead><tr>${columns().map((name) => html`<th key=${name} scope="col">${name}</th>`)}<td></td></tr></thead>
          <tbody>${sorted.map((key) => html`<${Row} key=${key.key_id} item=${key} over=${ended(key)} own=${caller.name === `key:${key.key_id}`} change=${() => setEdited(key)} load=${load} />`)}</tbody>
        </table></div>`}
      ${edited && html`<${KeyDialog} item=${edited === "new" ? null : edited} isFirst=${isFirst} close=${close} />`}
    </section>`;
}

const columns = () => [phrase("keys.name"), phrase("keys.rights"), phrase("keys.workspaces"), phrase("keys.groups"), phrase("keys.limits"), phrase("keys.used")];

const day = new Intl.DateTimeFormat(language, { dateStyle: "medium" });

/** @param {{item: Key, over: boolean, own: boolean, change: () => void, load: () => void}} props */
function Row({ item, over, own, change, load }) {
  const { key_id, name, rights, workspaces, groups, limits, expires_at, revoked_at, last_used_at } = item;
  const state = revoked_at ? phrase("keys.revoked") : over ? phrase("keys.expired")
    : expires_at ? phrase("keys.until", { date: day.format(new Date(expires_at)) }) : "";
  const revoke = () => attempt(async () => {
    await fetchJson(`/api/keys/${encodeURIComponent(key_id)}`, { method: "DELETE" });
    load();
  });
  const list = (names) => (names ? short(names.join(", ") || "–", 200) : phrase("keys.all"));
  return html`
    <tr class=${over ? "soft" : ""}>
      <th scope="row"><bdi>${short(name, 80)}</bdi>${own && html` <span class="soft">${phrase("keys.own")}</span>`}${state && html`<br /><span class="soft">${state}</span>`}</th>
      <td>${rights.join(", ")}</td><td><bdi>${list(workspaces)}</bdi></td><td><bdi>${list(groups)}</bdi></td>
      <td>${describe(limits)}</td><td>${last_used_at ? ago(last_used_at) : phrase("keys.never")}</td>
      <td>${!over && html`<span class="row-actions"><button type="button" class="quiet" aria-label="${phrase("keys.change")} ${short(name, 60)}" onClick=${change}>${phrase("keys.change")}</button>
        ${!own && html`<${Confirm} of=${short(name, 60)} act=${revoke} label=${phrase("keys.revoke")} really=${phrase("keys.really")} />`}</span>`}</td>
    </tr>`;
}

/** @param {Key["limits"]} limits */
function describe({ requests_per_minute, runs, tokens_per_day, dollars_per_day, max_documents, max_stored_mb }) {
  const parts = [
    requests_per_minute !== null && phrase("keys.a_minute", { count: requests_per_minute }),
    runs !== null && phrase("keys.at_once", { count: runs }),
    tokens_per_day !== null && phrase("keys.tokens_a_day", { count: tokens_per_day }),
    dollars_per_day !== null && phrase("keys.dollars_a_day", { cost: dollars(dollars_per_day) }),
    max_documents !== null && phrase("keys.in_documents", { count: max_documents }),
    max_stored_mb !== null && phrase("keys.in_megabytes", { count: max_stored_mb }),
  ];
  return parts.filter(Boolean).join(", ") || phrase("keys.default");
}
