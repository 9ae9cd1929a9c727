"""Joins the scripts of the pages, so that a browser fetches few: without a build, and without another program."""

import json
import re
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from os.path import normpath
from pathlib import PurePath
from typing import Any

_IMPORT = re.compile(r'^import (?P<names>[^"]*) from "(?P<file>\.[^"]+)";', re.MULTILINE)
_IMPORT_LATER = re.compile(r'\bimport\("(?P<file>\.[^"]+)"\)')
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)


def _find(files: Mapping[str, bytes], script: str, pattern: re.Pattern[str] = _IMPORT) -> list[str]:
    return [_resolve(script, found) for found in pattern.finditer(files[script].decode())]


def _resolve(script: str, found: re.Match[str]) -> str:
    return normpath(PurePath(script).parent / found["file"])


def follow_imports(files: Mapping[str, bytes], script: str, *, later: bool = False) -> set[str]:
    """Return the script and all that it imports: at once, or also `later`, by what it does."""
    found, new = set[str](), {script}
    while new:
        found |= new
        new = {target for each in new for target in _find(files, each)} - found
        if later:
            new |= {target for each in found for target in _find(files, each, _IMPORT_LATER)} - found
    return found


def join_scripts(files: dict[str, bytes], pages: Sequence[str]) -> None:
    """Put one script in place of those that the same pages need, at once or later. A browser fetches six files at once,
    and each six would take another way to the server and back. Scripts of others stay as they are, and so do those
    that are more than a function can be. Each joined script has a map, by which a browser's tools name the file and
    the line of an error."""
    homes = _find_homes(files, pages)
    lines: dict[str, list[str]] = {home: [] for home in homes.values()}
    imports: dict[str, dict[str, None]] = {home: {} for home in homes.values()}
    sections: dict[str, list[Any]] = {home: [] for home in homes.values()}
    # Each after what it imports. Scripts that import one another are refused here.
    for script in TopologicalSorter({each: _find(files, each) for each in files if each[-3:] == ".js"}).static_order():
        if home := homes.get(script):
            original = files.pop(script).decode()
            source = {"version": 3, "sources": [f"parts/{script}"], "sourcesContent": [original], "names": []}
            # The line after the function's first is the first of the script, and each next line the next.
            source["mappings"] = ";".join(["", "AAAA", *["AACA"] * original.count("\n")])
            sections[home].append({"offset": {"line": len(lines[home]), "column": 0}, "map": source})
            lines[home] += _enclose(script, original, homes, imports[home]).split("\n")
    for home, joined in lines.items():
        files[home] = "\n".join([*joined, *imports[home], f"//# sourceMappingURL={home}.map", ""]).encode()
        files[f"{home}.map"] = json.dumps({"version": 3, "sections": sections[home]}).encode()


def _find_homes(files: Mapping[str, bytes], pages: Sequence[str]) -> dict[str, str]:
    """Return where each script goes, such as `debug.ask-later.js`; a page's own are in the script of the page."""
    at_once = {page: follow_imports(files, page) for page in pages}
    ever = {page: follow_imports(files, page, later=True) for page in pages}

    def find_home(script: str) -> str:
        now = [page[:-3] for page in pages if script in at_once[page]]
        later = [f"{page[:-3]}-later" for page in pages if script in ever[page] - at_once[page]]
        return "shared.js" if len(now) > 1 else f"{'.'.join(now + later)}.js"

    joined = {script for script in set[str]().union(*ever.values()) if not script.startswith("vendor/")}
    return {script: find_home(script) for script in sorted(joined) if b"import.meta" not in files[script]}


def _name(script: str) -> str:
    return "$" + re.sub(r"\W", "_", script)


def _enclose(script: str, text: str, homes: Mapping[str, str], imports: dict[str, None]) -> str:
    """Return the script as a function that returns its exports. Add to `imports` what it needs of others."""

    def take(found: re.Match[str]) -> str:
        target = _resolve(script, found)
        home, name = homes.get(target), _name(target)
        if home != homes[script]:
            imports[f'import {f"{{ {name} }}" if home else f"* as {name}"} from "./{home or target}";'] = None
        return f"const {found['names'].replace(' as ', ': ')} = {name};"

    def fetch(found: re.Match[str]) -> str:
        target = _resolve(script, found)
        home = homes.get(target)
        return f'import("./{home}").then((home) => home.{_name(target)})' if home else f'import("./{target}")'

    exported = ", ".join(_EXPORT.findall(text))
    inner = _EXPORT.sub("", _IMPORT_LATER.sub(fetch, _IMPORT.sub(take, text)))
    return f"export const {_name(script)} = (() => {{\n{inner}\nreturn {{ {exported} }};\n}})();"
