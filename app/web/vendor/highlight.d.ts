// What the page uses of highlight.js: the tree of an emitter. Its HTML would be refused by the page's policy.
export type Scoped = { scope?: string; children: (Scoped | string)[] };
declare const hljs: {
  getLanguage(name: string): unknown;
  highlight(code: string, options: { language: string; ignoreIllegals?: boolean }): { _emitter: { rootNode: Scoped } };
};
export default hljs;
