"""Finding and loading files of this machine, and checking their names."""

import os
import stat
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.ingest.formats import find_suffix, is_read_from_folders, list_formats
from app.ingest.metadata.sidecars import is_sidecar
from app.ingest.opening import open_file, resolve
from domain.documents import DocumentReport
from domain.errors import AskgraphError, OversizedDocument, UnreadableDocument, UnsupportedDocument

MAX_NAME, MAX_NAME_BYTES = 1024, 2500
"""Longest path or name in characters and in bytes: a database index holds 2,700 bytes, with the workspace's name."""

_START = 4096
"""Bytes by which a file is known whose name tells nothing."""
_REORDERING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Bidirectional classes of the invisible characters that change the order in which text is shown."""


def check_name(source: str, longest: int = MAX_NAME) -> None:
    """Raise `UnreadableDocument` for a file name that cannot be stored or shown.

    Spaces and invisible characters of all scripts are accepted, as operating systems use them: macOS puts U+202F into
    the names of screenshots. Control characters, line separators and characters that reorder text are refused, because
    a list or log would show another name than the file's.
    """
    if not source:
        raise UnreadableDocument("The file came without a name. The name identifies the document; give one.")
    if len(source) > longest:
        raise UnreadableDocument(
            f"The file's name has {len(source):,} characters; {longest:,} are the limit. Shorten it."
        )
    if (size := len(source.encode(errors="surrogatepass"))) > MAX_NAME_BYTES:
        raise UnreadableDocument(f"The file's name has {size:,} bytes; {MAX_NAME_BYTES:,} are the limit. Shorten it.")
    for character in source:
        if (category := unicodedata.category(character)) == "Cs":
            raise UnreadableDocument("The name is not valid UTF-8, so it cannot be stored. Rename the file or folder.")
        if category in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(character) in _REORDERING:
            raise UnreadableDocument(
                f"The file's name holds the control character U+{ord(character):04X}, so lists and logs would not show "
                "it as it is. Rename the file."
            )


def report_bad_name(source: str) -> DocumentReport | None:
    """Return the report of a file whose name is refused; None for any other file."""
    try:
        check_name(source)
    except UnreadableDocument as error:
        return report_failure(ascii(source[:MAX_NAME]), error)
    return None


@dataclass(slots=True)
class FoundFiles:
    """What a folder holds."""

    files: list[Path] = field(default_factory=list)
    """Those of supported formats, resolved and sorted."""
    passed_over: list[Path] = field(default_factory=list)
    """Others, and links that lead out of the folder."""
    mounts: list[str] = field(default_factory=list)
    """The folders in it that are mounted."""
    links: list[str] = field(default_factory=list)
    """Links to folders, which are not followed."""
    unread: dict[str, str] = field(default_factory=dict)
    """What could not be looked into, and why: files may be there that nobody saw."""


def find_files(path: Path) -> tuple[list[Path | DocumentReport], list[Path]]:
    """Return the files that a path stands for, and those that are passed over. Where there are no files, or some could
    not be seen, the list also holds reports that say why."""
    path = resolve(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        problem = "There is no such file or folder. Check the path."
    except OSError as error:
        problem = describe_failure(error)
    else:
        if stat.S_ISREG(mode):
            return [path], []
        if stat.S_ISDIR(mode):
            found = look_through(path)
            files: list[Path | DocumentReport] = [*found.files]
            files += [report_failure(at, UnreadableDocument(why)) for at, why in found.unread.items()]
            none = UnsupportedDocument(f"The folder holds no file of a supported format ({list_formats()}).")
            return files or [report_failure(str(path), none)], found.passed_over
        problem = "It is neither a file nor a folder. Check the path."
    return [report_failure(str(path), UnreadableDocument(problem))], []


def look_through(root: Path) -> FoundFiles:
    """Find the files in a folder, which is resolved, and in the folders in it. Hidden ones are left out."""
    found = FoundFiles()

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # else it was removed meanwhile
            found.unread[show_name(str(error.filename))] = describe_failure(error)

    for folder, folders, names in os.walk(root, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found.mounts += filter(os.path.ismount, (f"{folder}/{name}" for name in folders))
        found.links += filter(os.path.islink, (f"{folder}/{name}" for name in folders))
        for name in sorted(name for name in names if not name.startswith(".") and not is_sidecar(name)):
            file = Path(folder, name)
            try:
                is_file = stat.S_ISREG(file.stat().st_mode)
            except OSError as error:
                note(error)
                continue
            # What a link leads to may be anything that this process can read, and nobody has named it.
            whole = resolve(file)
            if (
                is_file
                and whole.is_relative_to(root)
                and is_read_from_folders(name, b"" if find_suffix(name) else _load_start(whole))
            ):
                found.files.append(whole)
            else:
                found.passed_over.append(file)
    return found


def _load_start(file: Path) -> bytes:
    with suppress(OSError), open_file(file) as opened:
        return opened.read(_START)
    return b""


def show_name(source: str) -> str:
    """Return a file's name as a list or log can show it."""
    return source if source.isprintable() else ascii(source)


def describe_failure(error: OSError) -> str:
    """Say what the operating system answered, and what to do."""
    return f"{error.strerror}. Check the path, its permissions and its drive, and retry."


def load(path: Path, max_bytes: int) -> bytes:
    """Return the file's bytes. Raises `OversizedDocument` and `UnreadableDocument`."""
    try:
        with open_file(path) as file:
            check_size(size := os.fstat(file.fileno()).st_size, max_bytes)
            data = file.read(size + 1)
            if len(data) > size:  # it grows
                data += file.read(max_bytes)
    except OSError as error:
        raise UnreadableDocument(describe_failure(error)) from error
    check_size(len(data), max_bytes)
    return data


def check_size(size: int, max_bytes: int) -> None:
    """Raise `OversizedDocument` for a file of more bytes than that."""
    if size > max_bytes:
        raise OversizedDocument(f"The file has {size / 1e6:.1f} MB; {max_bytes / 1e6:.0f} MB are the limit. Split it.")


def report_failure(source: str, error: AskgraphError) -> DocumentReport:
    """Make the report of a file that did not become a document."""
    return DocumentReport(source, "failed", error=error.message, code=error.code)
