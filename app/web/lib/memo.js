import { Component, h } from "../vendor/preact-htm.js";

/** The component, drawn again only where one of its properties has changed. @param {any} View */
export const memo = (View) => class extends Component {
  shouldComponentUpdate(next) {
    return Object.keys(next).some((name) => next[name] !== this.props[name]);
  }

  render(props) {
    return h(View, props);
  }
};
