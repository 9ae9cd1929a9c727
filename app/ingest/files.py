"""Finding and loading files of this machine, and checking their names."""

import os
import unicodedata
from pathlib import Path

from app.ingest.formats import is_read_from_folders, list_formats
from app.ingest.metadata.sidecars import is_sidecar
from domain.documents import DocumentReport
from domain.errors import AskgraphError, OversizedDocument, UnreadableDocument, UnsupportedDocument

MAX_NAME = 1024
"""Longest path or name in characters; a database index holds about 2,700 bytes of it."""

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
    for character in source:
        if (category := unicodedata.category(character)) == "Cs":
            raise UnreadableDocument("The file's name is not valid UTF-8, so it cannot be stored. Rename the file.")
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


def find_files(path: Path) -> tuple[list[Path | DocumentReport], list[Path]]:
    """Return the files that a path stands for, resolved and sorted, and those that are passed over: files of
    unsupported formats, and in a folder links that lead out of it.

    Where there are no files, the list holds a report that says why.
    """
    path = path.expanduser().resolve()
    if path.is_file():
        return [path], []
    if not path.is_dir():
        problem = "It is neither a file nor a folder." if path.exists() else "There is no such file or folder."
        return [report_failure(str(path), UnreadableDocument(f"{problem} Check the path."))], []
    files: list[Path | DocumentReport] = []
    passed_over: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith(".") or not file.is_file():
                continue
            if is_sidecar(name):
                continue
            # What a link leads to may be anything that this process can read, and nobody has named it.
            if not is_read_from_folders(name) or not (whole := file.resolve()).is_relative_to(path):
                passed_over.append(file)
            else:
                files.append(whole)
    if files:
        return files, passed_over
    problem = f"The folder holds no file of a supported format ({list_formats()})."
    return [report_failure(str(path), UnsupportedDocument(problem))], passed_over


def load(path: Path, max_bytes: int) -> bytes:
    """Return the file's bytes. Raises `OversizedDocument` and `UnreadableDocument`."""
    try:
        check_size(path.stat().st_size, max_bytes)
        return path.read_bytes()
    except OSError as error:
        raise UnreadableDocument(f"{error.strerror}. Check its permissions and retry.") from error


def check_size(size: int, max_bytes: int) -> None:
    """Raise `OversizedDocument` for a file of more bytes than that."""
    if size > max_bytes:
        raise OversizedDocument(f"The file has {size / 1e6:.1f} MB; {max_bytes / 1e6:.0f} MB are the limit. Split it.")


def report_failure(source: str, error: AskgraphError) -> DocumentReport:
    """Make the report of a file that did not become a document."""
    return DocumentReport(source, "failed", error=error.message, code=error.code)
