import { html, useState } from "../../vendor/preact-htm.js";
import { attempt } from "../../lib/api.js";
import { sendFeedback } from "../../lib/conversations.js";
import { phrase } from "../../lib/language.js";
import { changeTurn } from "../../lib/runs.js";
import { visible } from "../../lib/text.js";
import { icon } from "../icon.js";

const REASONS = ["wrong", "incomplete", "not_found", "bad_source", "other"];

/** Whether an answer helped, and if not, why. @param {{turn: Turn}} props */
export function Feedback({ turn: { key, runId, feedback } }) {
  const [asking, setAsking] = useState(false);
  /** @param {{rating: "up" | "down", reason: string | null, comment: string} | null} given */
  const give = (given) => attempt(async () => {
    const kept = await sendFeedback(/** @type {string} */ (runId), given);
    changeTurn(key, (turn) => ({ ...turn, feedback: kept }));
  });
  const rating = feedback?.rating;
  const said = [feedback?.reason && phrase(`feedback.${feedback.reason}`), feedback?.comment && `“${visible(feedback.comment)}”`].filter(Boolean).join(": ");
  /** @param {"up" | "down"} wanted */
  const rate = (wanted) => {
    // What somebody wrote is shown again, to be changed; no second press loses it.
    if (wanted === rating && said) return setAsking(!asking);
    setAsking(wanted === "down" && rating !== "down");
    give(rating === wanted ? null : { rating: wanted, reason: null, comment: "" });
  };
  const explain = (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    give({ rating: "down", reason: String(form.get("reason") || "") || null, comment: String(form.get("comment")).trim() });
    setAsking(false);
  };
  return html`
    <span class="rating" role="group" aria-label=${phrase("feedback.helped")}>
      ${/** @type {const} */ (["up", "down"]).map((each) => html`
        <button type="button" class="quiet icon" key=${each} aria-pressed=${rating === each} aria-label=${phrase(`feedback.${each}`)} title=${phrase(`feedback.${each}`)} onClick=${() => rate(each)}>${icon(each)}</button>`)}
    </span>
    ${said && !asking && html`<span class="soft" role="status"><bdi>${said}</bdi></span>`}
    ${asking && html`
      <form class="reasons" onSubmit=${explain}>
        <label>${phrase("feedback.what")}${" "}
          <select name="reason">
            <option value="">${phrase("feedback.choose")}</option>
            ${REASONS.map((reason) => html`<option key=${reason} value=${reason} selected=${reason === feedback?.reason}>${phrase(`feedback.${reason}`)}</option>`)}
          </select></label>
        <input name="comment" aria-label=${phrase("feedback.comment")} placeholder=${phrase("feedback.in_words")} maxlength="1000" value=${feedback?.comment ?? ""} />
        <button type="submit">${phrase("send")}</button>
      </form>`}`;
}
