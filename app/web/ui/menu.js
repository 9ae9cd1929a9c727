import { html, useMemo } from "../vendor/preact-htm.js";

let made = 0;

/** A button that opens a list of things to do beside it. Doing one closes it, unless that one asks once more.
 * @param {{label: string, id?: string, look?: string, shown: any, onOpen?: () => void, children?: any}} props */
export function Menu({ label, id, look = "quiet icon", shown, onOpen, children }) {
  const target = useMemo(() => id ?? `menu-${(made += 1)}`, []);
  const onClick = (event) => {
    if (!event.defaultPrevented && event.target.closest("button, a")) event.currentTarget.hidePopover();
  };
  return html`
    <button type="button" class=${look} popovertarget=${target} aria-label=${label} title=${label}>${shown}</button>
    <div id=${target} class="menu" popover="auto" role="group" aria-label=${label} onClick=${onClick} onToggle=${({ newState }) => newState === "open" && onOpen?.()}>${children}</div>`;
}
