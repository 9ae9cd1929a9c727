import { Component, h } from "../vendor/preact-htm.js";

/** The component, drawn again only where one of its properties has changed. @param {any} View */
export function memo(View) {
  return class extends Component {
    /** @param {Record<string, unknown>} next */
    shouldComponentUpdate(next) {
      const { props } = (this);
      return Object.keys(next).some((name) => next[name] !== props[name]);
    }

    render(props) {
      return h(View, props);
    }
  };
}
