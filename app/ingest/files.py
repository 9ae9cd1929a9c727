"""Files on this machine: found, read, and refused."""

import os
from pathlib import Path

from app.ingest.reading import find_kind
from domain.documents import DocumentReport
from domain.errors import DocumentError, OversizedDocument, UnreadableDocument, UnsupportedDocument

MAX_NAME = 1024
"""Characters of a path or name; a database index holds no more than about 2,700 bytes of it."""


def refuse_name(source: str) -> DocumentReport | None:
    """The report of a file whose name the database cannot hold or index; None for any other."""
    if not source.isprintable() or not _is_unicode(source):
        problem = "The file's name holds characters that are not text. Rename it."
    elif len(source) > MAX_NAME:
        problem = f"The file's name has more than {MAX_NAME} characters. Shorten it."
    else:
        return None
    return report_failure(ascii(source[:MAX_NAME]), UnreadableDocument(problem))


def _is_unicode(text: str) -> bool:
    """False where a file name's bytes were no UTF-8, which Python carries as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_files(path: Path) -> tuple[list[Path | DocumentReport], int]:
    """The files that a path stands for, resolved and sorted, or the report of why there are none; and how many files
    of no supported type it also holds."""
    path = path.expanduser().resolve()
    if path.is_file():
        return [path], 0
    if not path.is_dir():
        problem = "It is neither a file nor a folder." if path.exists() else "There is no such file or folder."
        return [report_failure(str(path), UnreadableDocument(f"{problem} Check the path."))], 0
    files: list[Path | DocumentReport] = []
    passed_over = 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith(".") or not file.is_file():
                continue
            if find_kind(name) is None:
                passed_over += 1
            else:
                files.append(file.resolve())
    if files:
        return files, passed_over
    problem = "The folder holds no Markdown, plain text, HTML, PDF or DOCX file."
    return [report_failure(str(path), UnsupportedDocument(problem))], passed_over


def load(path: Path, max_bytes: int) -> bytes:
    """What is in the file. Raises `OversizedDocument`, `UnreadableDocument`."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise OversizedDocument(
                f"The file has {size / 1e6:.1f} MB; {max_bytes / 1e6:.0f} MB are the limit. Split it."
            )
        return path.read_bytes()
    except OSError as error:
        raise UnreadableDocument(f"{error.strerror}. Check its permissions and retry.") from error


def report_failure(source: str, error: DocumentError) -> DocumentReport:
    """That the file did not become a document."""
    return DocumentReport(source, "failed", error=error.message, code=error.code)
