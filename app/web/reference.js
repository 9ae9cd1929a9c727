/** Sends what is filled in on the page `/docs`, and shows what comes back. */

/** Characters of a response that are shown: a stream may go on for long. */
const MOST = 200_000;

const key = /** @type {HTMLInputElement} */ (document.getElementById("key"));

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const output = /** @type {HTMLOutputElement} */ (form.querySelector("output"));
  output.value = "…";
  try {
    await show(await send(form), output);
  } catch (error) {
    output.value = String(error);
  }
});

/** @param {HTMLFormElement} form */
function send(form) {
  let path = /** @type {string} */ (form.dataset.path);
  const query = new URLSearchParams();
  const parts = new FormData();
  /** @type {RequestInit} */
  const options = { method: form.dataset.method };
  const headers = new Headers(key.value ? { Authorization: `Bearer ${key.value}` } : {});
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[data-in]"))) {
    const { name, value } = field;
    const place = field.dataset.in;
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "json") options.body = value;
    else if (field.files) for (const file of field.files) parts.append(name, file);
    else if (place === "header" && value) headers.set(name, value);
    else for (const line of value.split("\n").filter(Boolean)) (place === "form" ? parts : query).append(name, line);
  }
  if (form.querySelector('[data-in="json"]')) headers.set("Content-Type", "application/json");
  else if (form.querySelector('[data-in="form"]')) options.body = parts;
  return fetch(query.size ? `${path}?${query}` : path, { ...options, headers });
}

/** @param {Response} response @param {HTMLOutputElement} output */
async function show(response, output) {
  const type = response.headers.get("Content-Type") ?? "";
  const head = `${response.status} ${response.statusText} ${type}\n`;
  if (type.startsWith("application/json")) {
    output.value = head + JSON.stringify(await response.json(), null, 1).slice(0, MOST);
    return;
  }
  if (!response.body || !type.startsWith("text/")) {
    output.value = `${head}${(await response.blob()).size} bytes`;
    return;
  }
  output.value = head;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    output.append(read.value);
    if ((output.textContent ?? "").length > MOST) return reader.cancel();
  }
}
