import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson, sending } from "../../lib/api.js";
import { language, phrase } from "../../lib/language.js";
import { fileName, short } from "../../lib/text.js";
import { Groups } from "../groups.js";

/** So many documents are shown at once. */
const SHOWN = 50;

/** Who may read the documents of a workspace: all of one group, or with some words, are changed together.
 * @param {{workspace: string}} props */
export function DocumentReaders({ workspace }) {
  const [documents, setDocuments] = useState(/** @type {LibraryDocument[]} */ ([]));
  const [words, setWords] = useState("");
  const [most, setMost] = useState(SHOWN);
  const [edited, setEdited] = useState(/** @type {LibraryDocument[]} */ ([]));
  const [progress, setProgress] = useState("");
  const query = `?${new URLSearchParams({ workspace })}`;
  const load = () => attempt(async () => setDocuments((await fetchJson(`/api/documents${query}`)).documents));
  useEffect(() => void load(), [workspace]);
  const wanted = words.toLowerCase().split(/\s+/);
  const found = documents.filter(({ title, source, groups }) => {
    const text = [title, source, ...(groups ?? [])].join("\n").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const counts = new Map();
  for (const name of documents.flatMap(({ groups }) => groups ?? [])) counts.set(name, (counts.get(name) ?? 0) + 1);
  /** @param {string[]} groups */
  const save = async (groups) => {
    try {
      for (const [done, { id }] of edited.entries()) {
        setProgress(phrase("readers.changing", { done, total: edited.length }));
        await fetchJson(`/api/documents/${encodeURIComponent(id)}${query}`, sending("PATCH", { groups }));
      }
    } finally {
      setProgress("");
      await load();
    }
  };
  const shared = edited.every(({ groups }) => String(groups) === String(edited[0].groups)) ? edited[0]?.groups : null;
  const title = edited.length === 1 ? `${phrase("readers.title")}: ${short(edited[0].title, 60)}` : phrase("readers.these", { documents: phrase("documents", { count: edited.length }) });
  return html`
    <p class="row"><input type="search" class="search" aria-label=${phrase("readers.find")} placeholder=${phrase("readers.find")} value=${words} onInput=${(event) => setWords(/** @type {HTMLInputElement} */ (event.currentTarget).value)} />
      ${found.length > 1 && html`<button type="button" onClick=${() => setEdited(found)}>${phrase("readers.change_all", { documents: phrase("documents", { count: found.length }) })}</button>`}</p>
    ${counts.size > 0 && html`
      <ul class="chips" aria-label=${phrase("keys.groups")}>${[...counts].sort().map(([name, count]) => html`
        <li key=${name}><button type="button" class="chip" onClick=${() => setWords(name)}><bdi>${name}</bdi> <span class="soft">${count.toLocaleString(language)}</span></button></li>`)}</ul>`}
    <div class="table" tabindex="0" role="group" aria-label=${phrase("readers.library", { name: workspace })}><table>
      <thead><tr><th scope="col">${phrase("evidence.document")}</th><th scope="col">${phrase("keys.groups")}</th><td></td></tr></thead>
      <tbody>${found.slice(0, most).map((each) => html`
        <tr key=${each.id}><th scope="row"><bdi>${short(each.title || fileName(each.source), 100)}</bdi><br /><span class="soft"><bdi>${short(each.source, 120)}</bdi></span></th>
          <td><bdi>${each.groups?.length ? short(each.groups.join(", "), 200) : phrase("readers.everybody")}</bdi></td>
          <td><button type="button" class="quiet" aria-label="${phrase("keys.change")} ${short(each.title, 60)}" onClick=${() => setEdited([each])}>${phrase("keys.change")}</button></td></tr>`)}</tbody>
    </table></div>
    ${found.length > most && html`<p><button type="button" onClick=${() => setMost(most + SHOWN)}>${phrase("show_more")}</button> <span class="soft">${phrase("readers.more", { count: found.length - most })}</span></p>`}
    ${edited.length > 0 && html`<${Groups} title=${title} groups=${shared ?? []} save=${save} close=${() => setEdited([])} progress=${progress} />`}`;
}
