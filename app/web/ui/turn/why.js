import { html } from "../../vendor/preact-htm.js";
import { address } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { useStore } from "../../lib/store.js";

/** Leads to the debugger, for those who may read a run's steps.
 * @param {{runId: string}} props */
export function Why({ runId }) {
  const mayAsk = useStore((state) => state.caller?.rights.includes("debug"));
  return mayAsk && html`<a class="quiet link" href=${address(`/debug/runs/${runId}`)}>${phrase("facts.why")}</a>`;
}
