"""Reads the descriptions of fields: the strings below them in the source of their class."""

import ast
from collections.abc import Iterator
from itertools import pairwise


def list_descriptions(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the name of each field that has a string below it, and that string in one line."""
    for field, below in pairwise(kind.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
