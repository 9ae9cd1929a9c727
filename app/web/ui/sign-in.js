import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { attempt, fetchJson, request, sending } from "../lib/api.js";
import { phrase } from "../lib/language.js";
import { setState } from "../lib/store.js";
import { visible } from "../lib/text.js";

/** Asks for a key. The server keeps it in a cookie that no script can read. */
export function SignIn() {
  const [refused, setRefused] = useState("");
  const [health, setHealth] = useState(/** @type {{sign_in?: boolean, keys_from?: string}} */ ({}));
  useEffect(() => void fetchJson("/readyz").catch((error) => error.body ?? {}).then(setHealth), []);
  const signIn = async (event) => {
    event.preventDefault();
    const key = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("key");
    await attempt(async () => {
      await request("/api/session", sending("POST", { key: String(key).trim() }));
      location.reload();
    }, setRefused);
  };
  return html`
    <section class="sign-in">
      <h1>askgraph</h1>
      <h2>${phrase("sign_in.title")}</h2>
      <form onSubmit=${signIn}>
        <label for="key">${phrase("sign_in.key")}</label>
        <input id="key" name="key" type="password" autocomplete="current-password" required autofocus />
        <button class="main" type="submit">${phrase("sign_in.title")}</button>
      </form>
      ${health.keys_from && html`<p class="soft"><bdi>${visible(health.keys_from)}</bdi></p>`}
      ${health.sign_in && html`<p><a href=${`/api/session/sign-in?${new URLSearchParams({ back: location.pathname + location.search })}`}>${phrase("sign_in.account")}</a></p>`}
      <p role="alert" class="wrong">${refused}</p>
    </section>`;
}

/** Forgets the key, and asks for one. */
export async function signOut() {
  await request("/api/session", { method: "DELETE" });
  // Nothing of theirs stays for whoever comes next.
  setState({ thread: null });
  sessionStorage.clear();
  location.assign("/");
}
