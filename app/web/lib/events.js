/** Server-sent events (WHATWG HTML, 9.2.6). */

/** Turns text, cut anywhere, into events, each with its own id. An event without its closing blank line is never given out. */
export class EventParser {
  #rest = "";
  #type = "";
  /** @type {string[]} */
  #data = [];
  #id = "";
  #afterReturn = false;

  /** @param {string} text @returns {Generator<{type: string, data: string, id: string}>} */
  *feed(text) {
    if (!text) return;
    // A carriage return ends a line at once; a line feed that follows it, even in the next piece, is no second end.
    this.#rest += this.#afterReturn && text[0] === "\n" ? text.slice(1) : text;
    this.#afterReturn = text.at(-1) === "\r";
    for (let end; (end = /\r\n|\n|\r/.exec(this.#rest)); ) {
      const line = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      if (line === "") {
        if (this.#data.length) yield { type: this.#type || "message", data: this.#data.join("\n"), id: this.#id };
        this.#type = "";
        this.#data = [];
        this.#id = "";
      } else if (!line.startsWith(":")) {
        const [, field, value] = /** @type {RegExpExecArray} */ (/^([^:]*):? ?(.*)$/s.exec(line));
        if (field === "event") this.#type = value;
        if (field === "data") this.#data.push(value);
        if (field === "id") this.#id = value;
      }
    }
  }
}

/** Whether an event says that its connection ends, and not the run: its server stops, and another one goes on.
 * @param {{type: string, id: string, retryable?: boolean}} event */
export const isCut = ({ type, id, retryable }) => type === "error" && !id && retryable === true;

/** The server sends a comment every 15 seconds: a connection that is silent for longer than this is dead. */
export const SILENCE_SECONDS = 45;

/** The events of a streamed response, each `{type, id, ...data}`. @param {Response} response */
export async function* readEvents(response) {
  if (!response.body) return;
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const hangUp = () => void reader.cancel().catch(() => {});
  try {
    for (;;) {
      const timer = setTimeout(hangUp, 1000 * SILENCE_SECONDS);
      const part = await reader.read().finally(() => clearTimeout(timer));
      if (part.done) return;
      for (const { type, id, data } of parser.feed(part.value)) yield { ...JSON.parse(data), type, id };
    }
  } finally {
    hangUp();
  }
}
