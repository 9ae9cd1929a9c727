import { html, useEffect, useState } from "../vendor/preact-htm.js";

/** A component whose code is fetched when it is first drawn. @param {() => Promise<any>} load */
export const lazy = (load) => function Lazy(props) {
  const [loaded, setLoaded] = useState(/** @type {any} */ (null));
  useEffect(() => void load().then((component) => setLoaded({ component })), []);
  return loaded && html`<${loaded.component} ...${props} />`;
};
