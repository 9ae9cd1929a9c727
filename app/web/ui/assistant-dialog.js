import { html, useState } from "../vendor/preact-htm.js";
import { attempt } from "../lib/api.js";
import { deleteAssistant, saveAssistant } from "../lib/assistants.js";
import { language, languages, phrase } from "../lib/language.js";
import { askAll, limits } from "../lib/library.js";
import { useStore } from "../lib/store.js";
import { short, visible } from "../lib/text.js";
import { Confirm } from "./confirm.js";
import { Dialog, readNames } from "./dialog.js";

const names = new Intl.DisplayNames(language, { type: "language" });

/** Makes an assistant, or changes one. @param {{item: Assistant | null, close: () => void}} props */
export function AssistantDialog({ item, close }) {
  const modes = useStore((state) => state.modes);
  const hasModel = useStore((state) => state.hasModel);
  const [problem, setProblem] = useState("");
  /** @param {() => Promise<void>} act */
  const dare = (act) => attempt(() => act().then(close), setProblem);
  /** @param {FormData} form */
  const save = (form) => dare(async () => {
    const from = form.get("from");
    const text = (name) => form.get(name) || null;
    const groups = readNames(form.get("groups"));
    const kept = item && from === "kept" ? { document_ids: item.document_ids, filter: item.filter } : {};
    await saveAssistant(item, {
      name: form.get("name"), description: form.get("description"), mode: form.get("mode"), instructions: text("instructions"),
      length: text("length"), language: text("language"), models: item?.models ?? null, metadata: item?.metadata ?? {},
      groups: item || groups.length ? groups : null,
      ...(from === "chosen" ? limits() : kept),
    });
    // What was chosen is the assistant's now.
    if (from === "chosen") askAll();
  });
  const title = phrase(item ? "assistants.change" : "assistants.make");
  /** @param {string} name @param {string} label @param {string[][]} options @param {string | null | undefined} value */
  const select = (name, label, options, value) => html`
    <label>${label}
      <select name=${name}>${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === (value ?? "")}>${text}</option>`)}</select></label>`;
  const asMode = ["", phrase("assistants.as_mode")];
  return html`
    <${Dialog} title=${item ? `${title}: ${visible(item.name)}` : title} submit=${save} close=${close} act=${phrase("save")} problem=${problem}
      before=${item && html`<${Confirm} of=${visible(item.name)} act=${() => dare(() => deleteAssistant(item))} />`}>
      <label>${phrase("assistants.name")}<input name="name" required maxlength="60" defaultValue=${item?.name ?? ""} autofocus /></label>
      <label>${phrase("assistants.description")}<input name="description" maxlength="500" defaultValue=${item?.description ?? ""} /></label>
      ${select("mode", phrase("assistants.mode"), modes.map((each) => [each, each]), item?.mode ?? "standard")}
      <label>${phrase("assistants.instructions")}
        <textarea name="instructions" rows="4" maxlength="2000" aria-describedby="instructed" defaultValue=${item?.instructions ?? ""}></textarea></label>
      <p class="soft" id="instructed">${phrase(hasModel ? "assistants.instructed" : "assistants.no_model")}</p>
      <${From} item=${item} select=${select} />
      ${select("length", phrase("assistants.length"), [asMode, ["brief", phrase("assistants.brief")], ["detailed", phrase("assistants.detailed")]], item?.length)}
      ${select("language", phrase("assistants.language"), [asMode, ["auto", phrase("assistants.asked")], ...languages.map((each) => [each, names.of(each) ?? each])], item?.language)}
      <label>${phrase("keys.groups")}<input name="groups" defaultValue=${item?.groups.join(", ") ?? ""} placeholder=${phrase("keys.names")} /></label>
    <//>`;
}

/** What it answers from: the library is where documents and filters are chosen.
 * @param {{item: Assistant | null, select: (name: string, label: string, options: string[][], value?: string) => any}} props */
function From({ item, select }) {
  const chosen = useStore((state) => state.chosen.length);
  const only = useStore((state) => state.only);
  const kept = [item?.document_ids && phrase("documents", { count: item.document_ids.length }), item?.filter && JSON.stringify(item.filter)].filter(Boolean).join(", ");
  const here = chosen ? phrase("documents", { count: chosen }) : only ? only.name : "";
  const options = [["", phrase("composer.all")]];
  if (kept) options.push(["kept", phrase("assistants.kept", { what: short(visible(kept), 60) })]);
  if (here) options.push(["chosen", phrase("assistants.chosen", { what: short(visible(here), 60) })]);
  return html`
    ${select("from", phrase("assistants.from"), options, kept ? "kept" : here && !item ? "chosen" : "")}
    ${!here && html`<p class="soft">${phrase("assistants.choose")}</p>`}`;
}
