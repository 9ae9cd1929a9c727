import { html, useState } from "../vendor/preact-htm.js";
import { ApiError } from "../lib/api.js";
import { sendFeedback } from "../lib/conversations.js";
import { changeTurn } from "../lib/runs.js";
import { setState } from "../lib/store.js";

const REASONS = {
  wrong: "It is wrong",
  incomplete: "Something is missing",
  not_found: "The documents do say it",
  bad_source: "The source does not fit",
  other: "Something else",
};

/** Whether an answer helped, and if not, why. @param {{turn: Turn}} props */
export function Feedback({ turn: { key, runId, feedback } }) {
  const [asking, setAsking] = useState(false);
  /** @param {{rating: "up" | "down", reason: string | null, comment: string} | null} given */
  const give = async (given) => {
    try {
      const kept = await sendFeedback(/** @type {string} */ (runId), given);
      changeTurn(key, (turn) => ({ ...turn, feedback: kept }));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setState({ trouble: error.message });
    }
  };
  const rating = feedback?.rating;
  /** @param {"up" | "down"} wanted */
  const rate = (wanted) => {
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
    <span class="rating" role="group" aria-label="Did this answer help?">
      <button type="button" class="quiet" aria-pressed=${rating === "up"} onClick=${() => rate("up")}>Helpful</button>
      <button type="button" class="quiet" aria-pressed=${rating === "down"} onClick=${() => rate("down")}>Not helpful</button>
    </span>
    ${asking && html`
      <form class="reasons" onSubmit=${explain}>
        <label>What is wrong with it?${" "}
          <select name="reason">
            <option value="">Choose…</option>
            ${Object.entries(REASONS).map(([reason, words]) => html`<option key=${reason} value=${reason}>${words}</option>`)}
          </select></label>
        <input name="comment" aria-label="Comment" placeholder="In your words (optional)" maxlength="1000" />
        <button type="submit">Send</button>
        <button type="button" class="quiet" onClick=${() => setAsking(false)}>Close</button>
      </form>`}`;
}
