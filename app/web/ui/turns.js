import { html, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { loadAgain, loadEarlier, readAddress } from "../lib/conversations.js";
import { phrase } from "../lib/language.js";
import { useStore } from "../lib/store.js";
import { icon } from "./icon.js";
import { Turn } from "./turn/turn.js";

/** The conversation. */
export function Turns() {
  const thread = useStore((state) => state.thread);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const first = useRef(/** @type {ThreadIdentity | undefined} */ (undefined));
  const turns = thread?.turns ?? [];
  const working = turns.filter(({ state }) => state === "working").length;
  const last = turns.at(-1)?.key;
  const [isCut, setCut] = useState(false);
  const end = () => box.current?.querySelector(".turn:last-child > :last-child");
  const look = () => setCut((end()?.getBoundingClientRect().bottom ?? 0) > (box.current?.getBoundingClientRect().bottom ?? 0) + 1);
  useLayoutEffect(look);
  useLayoutEffect(() => {
    // A new question goes to the top, where its answer has room; not while somebody reads the answer before.
    const block = working > 1 ? "nearest" : "start";
    const named = readAddress().run;
    const linked = named && first.current !== thread?.identity && box.current?.querySelector(`[data-run="${CSS.escape(named)}"]`);
    if (last) first.current = thread?.identity;
    if (linked) linked.scrollIntoView({ block });
    else if (last) box.current?.querySelector(`[data-turn="${last}"]`)?.scrollIntoView({ block });
  }, [last]);
  return html`
    <div class="turns" ref=${box} tabindex="-1" onScroll=${look}>
      <div class="column">
        ${thread?.loading && html`<p class="soft">${phrase("conversations.loading")}</p>`}
        ${thread?.trouble && html`<p class="note bad" role="alert">${thread.trouble} <button type="button" onClick=${loadAgain}>${phrase("try_again")}</button></p>`}
        ${thread?.earlier && html`<button type="button" class="earlier" onClick=${() => loadEarlier(20)}>${phrase("conversations.earlier")}</button>
          <p class="only-print">${phrase("conversations.not_printed")}</p>`}
        ${turns.map((turn) => html`<${Turn} key=${turn.key} turn=${turn} several=${working > 1} last=${turn.key === last} />`)}
      </div>
      ${working > 0 && isCut && html`<button type="button" class="to-end icon" aria-label=${phrase("turn.to_end")} title=${phrase("turn.to_end")} onClick=${() => end()?.scrollIntoView({ block: "end" })}>${icon("end")}</button>`}
    </div>`;
}
