"""Build the nouns that adjectives are measured by (app/adapters/data/adjectives.txt): "tall" by "stature" and "height".

    apt-get install wordnet-base && python benchmarks/build_adjectives.py

They are the attributes of WordNet 3.0. Adjectives that only say how much of anything, such as "large", are left out.
"""

from pathlib import Path

from app.adapters.calculation.naming import ADJECTIVES

WORDNET = Path("/usr/share/wordnet")
VAGUE = {"size", "degree", "numerousness"}


def read_synsets(part: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the words of each synset, by its place, and the places of its attributes."""
    synsets = {}
    for line in (WORDNET / f"data.{part}").read_text(encoding="utf-8").splitlines():
        if not line.startswith("  "):
            place, _, _, count, *rest = line.split(" | ")[0].split()
            end = 2 * int(count, 16)
            words = [word.split("(")[0].replace("_", " ").lower() for word in rest[:end:2]]
            pointers = zip(rest[end + 1 :: 4], rest[end + 2 :: 4], strict=True)
            synsets[place] = words, [at for kind, at in pointers if kind == "="]
    return synsets


def main() -> None:
    nouns = read_synsets("noun")
    measures: dict[str, dict[str, None]] = {}
    for words, attributes in read_synsets("adj").values():
        for word in words if attributes else []:
            measures.setdefault(word, {}).update(dict.fromkeys(noun for at in attributes for noun in nouns[at][0]))
    lines = [f"{word}: {', '.join(by)}\n" for word, by in sorted(measures.items()) if not VAGUE & by.keys()]
    ADJECTIVES.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
