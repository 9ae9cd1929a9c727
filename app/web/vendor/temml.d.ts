// What the page uses of Temml: it makes MathML of LaTeX, node by node.
declare const temml: { render(tex: string, into: Element, options: Record<string, unknown>): void };
export default temml;
