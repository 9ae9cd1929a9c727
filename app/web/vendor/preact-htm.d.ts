// Templates and virtual nodes are not typed.
export function h(tag: any, properties: any, ...children: any[]): any;
export function html(strings: TemplateStringsArray, ...values: any[]): any;
export function render(node: any, parent: Element): void;
export class Component { props: any; }
export function useState<T>(initial: T): [T, (value: T) => void];
export function useReducer<T>(reduce: (value: T, action: any) => T, initial: T): [T, (action: any) => void];
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(initial: T): { current: T };
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
