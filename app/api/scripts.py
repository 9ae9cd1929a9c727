"""What the scripts of the pages import, and some of them as one: without a build, and without another program."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from os.path import normpath
from pathlib import PurePath

_IMPORT = re.compile(rb'^import (\{[^"{}]*\} from )?[^"{}]*"(\.[^"]+)";', re.MULTILINE)
_IMPORT_LATER = re.compile(rb'\bimport\("(\.[^"]+)"\)')
_EXPORT = re.compile(rb"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_MODULE_ONLY = re.compile(rb"\bexport ?(?:\{|default\b|const \{)|\bimport\.meta\b")


def _resolve(script: str, target: bytes) -> str:
    return normpath(PurePath(script).parent / target.decode())


def follow_imports(files: Mapping[str, bytes], script: str, *, later: bool = False) -> dict[str, None]:
    """Return the script and all that it imports, at once or also `later`, each after what it imports itself."""
    found, seen = dict[str, None](), {script}

    def follow(each: str) -> None:
        targets = [target for _, target in _IMPORT.findall(files[each])]
        for target in targets + _IMPORT_LATER.findall(files[each]) * later:
            if (name := _resolve(each, target)) not in seen:
                seen.add(name)
                follow(name)
        found[each] = None

    follow(script)
    return found


def join_scripts(files: dict[str, bytes], pages: Sequence[str]) -> None:
    """Make one script of those that the same pages import, and let all others import it instead of them. A browser
    fetches six files at once, and each six would take another way to the server and back. Within it each script is a
    function, which returns what the script exports. Scripts that need to be modules stay what they are."""
    needed = [follow_imports(files, page) for page in pages]
    users = Counter(chain(*needed))
    readers = Counter(chain(*(follow_imports(files, page, later=True) for page in pages)))
    # What one page needs at once and another later is a file of its own.
    homes = {
        script: "shared.joined.js" if users[script] > 1 else page.replace(".js", ".joined.js")
        for page, scripts in zip(pages, needed, strict=True)
        for script in scripts
        if script not in pages and users[script] == readers[script] and not _MODULE_ONLY.search(files[script])
    }
    names = {script: b"$" + re.sub(rb"\W", b"_", script.encode()) for script in files}
    parts: dict[str, list[bytes]] = {home: [] for home in homes.values()}
    imports: dict[str, dict[bytes, None]] = {home: {} for home in homes.values()}

    def take(target: str, named: bytes) -> bytes:
        return b"const %b = %b;" % (named.removesuffix(b" from ").replace(b" as ", b": "), names[target])

    def enclose(script: str, found: re.Match[bytes]) -> bytes:
        target = _resolve(script, found[2])
        home = homes.get(target, target).encode()
        what = b"{ %b }" if target in homes else b"* as %b"
        if homes[script].encode() != home:
            imports[homes[script]][b'import %b from "./%b";\n' % (what % names[target], home)] = None
        return take(target, found[1])

    def come_later(script: str, found: re.Match[bytes]) -> bytes:
        return b'import("./%b")' % _resolve(script, found[1]).encode()

    def turn(script: str, found: re.Match[bytes]) -> bytes:
        target = _resolve(script, found[2])
        if target not in homes:
            return found[0]
        home = (b"../" * script.count("/") or b"./") + homes[target].encode()
        return b'import { %b } from "%b"; %b' % (names[target], home, take(target, found[1]))

    for script, home in homes.items():
        text = _IMPORT.sub(partial(enclose, script), files[script])
        text = _IMPORT_LATER.sub(partial(come_later, script), text)
        exported = b", ".join(_EXPORT.findall(text))
        function = b"(() => {\n%b\nreturn { %b };\n})()" % (_EXPORT.sub(b"", text), exported)
        parts[home].append(b"export const %b = %b;\n" % (names[script], function))
    for script in files.keys() - homes.keys():
        if script.endswith(".js") and not script.startswith("vendor/"):
            files[script] = _IMPORT.sub(partial(turn, script), files[script])
    for home, texts in parts.items():
        files[home] = b"".join([*imports[home], *texts])
