import { html, useState } from "../vendor/preact-htm.js";
import { address, fetchJson } from "../lib/api.js";
import { dollars, phrase, texts } from "../lib/language.js";
import { listAssistants } from "../lib/assistants.js";
import { setState, useStore } from "../lib/store.js";
import { visible } from "../lib/text.js";
import { Menu } from "./menu.js";

/** Chooses the mode of the next question, with a line on what each does and costs; and makes the team's own. */
export function Modes() {
  const mode = useStore((state) => state.mode);
  const modes = useStore((state) => state.modes);
  const assistants = useStore((state) => state.assistants);
  const hasModel = useStore((state) => state.hasModel);
  const mayMake = useStore(({ caller }) => caller?.rights.includes("ingest"));
  const [facts, setFacts] = useState(/** @type {Record<string, ModeFacts>} */ ({}));
  const open = () => {
    listAssistants();
    // Costs change with every answer. Without them the modes can be chosen all the same.
    fetchJson(address("/api/modes")).then((found) => setFacts(Object.fromEntries(found.modes.map((each) => [each.name, each]))), () => {});
  };
  /** @param {Assistant | null} item */
  const edit = (item) => setState({ edited: { item } });
  /** @param {string} name @param {string} [about] */
  const choice = (name, about) => html`
    <button type="button" aria-current=${name === mode ? "true" : undefined} onClick=${() => setState({ mode: name })}>
      <b>${visible(name)}</b> <span class="soft">${[visible(about ?? ""), explain(name, facts[name], hasModel)].filter(Boolean).join(" ")}</span></button>`;
  return html`
    <${Menu} id="modes" label="${phrase("composer.mode")} ${visible(mode)}" look="quiet ${mode === "standard" ? "rare" : ""}" shown="${visible(mode)} ▾" onOpen=${open}>
      ${modes.map((name) => choice(name))}
      ${assistants.map((each) => html`
        <div class="assistant" key=${each.assistant_id}>${choice(each.name, each.description || each.mode)}
          ${mayMake && html`<button type="button" class="quiet" aria-label=${`${phrase("assistants.change")}: ${visible(each.name)}`} onClick=${() => edit(each)}>${phrase("assistants.edit")}</button>`}</div>`)}
      ${mayMake && html`<button type="button" class="quiet" onClick=${() => edit(null)}>${phrase("assistants.make")}…</button>`}
    <//>`;
}

/** What the mode does and what a question costs in it: as measured, else the most that it may; nothing where neither is
 * known. @param {string} name @param {ModeFacts | undefined} facts @param {boolean} hasModel */
function explain(name, facts, hasModel) {
  const cost = facts?.dollars ? phrase("modes.cost", { cost: dollars(facts.dollars) })
    : facts?.most_dollars ? phrase("modes.most", { cost: dollars(facts.most_dollars) }) : "";
  return [(!hasModel && texts[`modes.${name}_alone`]) || (texts[`modes.${name}`] ?? (facts?.verifies ? phrase("modes.verifies") : "")), cost].filter(Boolean).join(" ");
}
