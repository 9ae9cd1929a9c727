/** Preact, its hooks and htm, as the pages use them. */

import { Component, h, render } from "./preact.js";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./preact-hooks.js";
import htm from "./htm.js";

export { Component, h, render, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState };
export const html = htm.bind(h);
