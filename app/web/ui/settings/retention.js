import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { attempt, fetchJson, sending } from "../../lib/api.js";
import { phrase } from "../../lib/language.js";
import { setState } from "../../lib/store.js";
import { short } from "../../lib/text.js";

const DAYS = [7, 30, 90, 365, null];
const SETTINGS = { days: "ASKGRAPH_RETENTION", steps_days: "ASKGRAPH_KEEP_STEPS" };

/** How long conversations are kept. What a choice deletes is said before it holds. @param {{workspaces: {id: string}[]}} props */
export function RetentionPolicy({ workspaces }) {
  const [policy, setPolicy] = useState(/** @type {any} */ (null));
  const load = () => attempt(async () => setPolicy(await fetchJson("/api/retention")));
  useEffect(() => void load(), []);
  if (!policy) return null;
  /** `deletes`: what a change would delete; null: nothing is changed. */
  const { fixed, deletes, ...chosen } = policy;
  const send = (wanted, dry_run) => attempt(async () => {
    // What is chosen meanwhile is chosen besides.
    const mine = { ...wanted, fixed, deletes: null };
    setPolicy(mine);
    const answered = await fetchJson("/api/retention", sending("PUT", { ...wanted, dry_run }));
    setPolicy((now) => (now !== mine ? now : dry_run ? answered : { ...answered, deletes: null }));
  }, (trouble) => {
    setState({ trouble });
    load();
  });
  const choose = (name, value) => {
    const { [name]: was, ...others } = chosen.by_workspace;
    send({ ...chosen, by_workspace: value === "all" ? others : { ...others, [name]: value === "" ? null : Number(value) } }, true);
  };
  const others = workspaces.filter(({ id }) => !(id in chosen.by_workspace));
  const isFixed = fixed.includes("days");
  return html`
    <section class="retention">
      <h2>${phrase("retention.title")}</h2>
      <${Span} label=${phrase("retention.conversations")} days=${policy.days} disabled=${isFixed} choose=${(value) => send({ ...chosen, days: value === "" ? null : Number(value) }, true)} />
      ${Object.entries(policy.by_workspace).map(([name, days]) => html`
        <${Span} key=${name} label=${phrase("retention.of", { name: short(name, 64) })} days=${days} disabled=${isFixed} asAll=${true} choose=${(value) => choose(name, value)} />`)}
      ${others.length > 0 && !isFixed && html`
        <label>${phrase("retention.own")}<select value="" onChange=${(event) => choose(event.currentTarget.value, String(policy.days ?? ""))}>
          <option value="">…</option>${others.map(({ id }) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>`}
      <${Span} label=${phrase("retention.steps")} days=${policy.steps_days} disabled=${fixed.includes("steps_days")} choose=${(value) => send({ ...chosen, steps_days: value === "" ? null : Number(value) }, true)} />
      ${fixed.length > 0 && html`<p class="soft">${phrase("retention.fixed", { names: fixed.map((name) => SETTINGS[name]).join(", ") })}</p>`}
      <div role="alert">${deletes && html`
        ${deletes.conversations + deletes.steps > 0 && html`<p class="note">${phrase("retention.deletes", { conversations: phrase("workspaces.conversations", { count: deletes.conversations }), answers: phrase("retention.answers", { count: deletes.steps }) })}</p>`}
        <p><button type="button" class="main" onClick=${() => send(chosen, false)}>${phrase("retention.keep")}</button>
          <button type="button" onClick=${load}>${phrase("cancel")}</button></p>`}</div>
    </section>`;
}

/** @param {{label: string, days: number | null, disabled: boolean, asAll?: boolean, choose: (value: string) => void}} props */
function Span({ label, days, disabled, asAll = false, choose }) {
  const offered = DAYS.includes(days) ? DAYS : [days, ...DAYS];
  return html`
    <label>${label}<select disabled=${disabled} value=${days ?? ""} onChange=${(event) => choose(event.currentTarget.value)}>
      ${offered.map((each) => html`<option key=${each} value=${each ?? ""} selected=${each === days}>${each === null ? phrase("retention.ever") : phrase("retention.days", { count: each })}</option>`)}
      ${asAll && html`<option value="all">${phrase("retention.as_all")}</option>`}</select></label>`;
}
