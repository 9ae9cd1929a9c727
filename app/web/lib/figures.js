/** Figures of runs as people read them. */

/** @param {number | null | undefined} ms */
export const time = (ms) => (ms === null || ms === undefined ? "–" : ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);

/** @param {number | null | undefined} cost US dollars */
export const money = (cost) => (cost === null || cost === undefined ? "price not known" : cost ? (cost < 0.00005 ? "< $0.0001" : `$${cost.toFixed(4)}`) : "no cost");

/** @param {number | null | undefined} score */
export const score = (score) => (score === null || score === undefined ? "–" : score.toFixed(2));

/** How a run ended, in words. @param {{running?: boolean, error: string | null, outcome: string | null}} run */
export const ending = ({ running, error, outcome }) => (running ? "running" : error ? error.replaceAll("_", " ") : (outcome ?? "no outcome").replaceAll("_", " "));

/** Whether that is good, so-so or bad; what fell back to less is so-so.
 * @param {{running?: boolean, error: string | null, outcome: string | null, degraded?: any}} run */
export function tone({ running, error, outcome, degraded }) {
  if (running) return "now";
  if (error && error !== "stopped") return "bad";
  return (outcome === "answered" || outcome === "conversed") && !degraded ? "good" : "warn";
}
