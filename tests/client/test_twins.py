"""The client and its async twin have the same methods: those of one, with nothing awaited, are those of the other."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "askgraph"

APART = frozenset(
    {"__init__", "__aenter__", "__aexit__", "_http", "close", "ask", "upload", "read_frames", "_read_events"}
)
"""Methods whose code differs in more: how a service is started and ended, and how pieces are yielded and joined."""

NAMES = {"AsyncGenerator": "Iterator", "asyncio": "time"}


class NothingAwaited(ast.NodeTransformer):
    """Makes code that waits by blocking."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.visit(node.value)  # type: ignore[no-any-return]

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        return ast.FunctionDef(**dict(ast.iter_fields(node)))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(NAMES.get(node.id, node.id), node.ctx)


def read_methods(module: str, name: str) -> dict[str, ast.AST]:
    tree = ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))
    [found] = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {node.name: node for node in found.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


BLOCKING, ASYNC = read_methods("client", "Client"), read_methods("async_client", "AsyncClient")


def test_they_have_the_same_methods() -> None:
    assert ASYNC.keys() - {"__aenter__", "__aexit__", "_http"} == BLOCKING.keys() - {"__enter__", "__exit__"}


@pytest.mark.parametrize("name", sorted(ASYNC.keys() - APART))
def test_a_method_does_the_same(name: str) -> None:
    assert ast.unparse(ast.fix_missing_locations(NothingAwaited().visit(ASYNC[name]))) == ast.unparse(BLOCKING[name])


@pytest.mark.parametrize("name", ["ask", "upload", "read_frames", "_read_events"])
def test_a_method_is_described_the_same(name: str) -> None:
    one, other = (ast.get_docstring(methods[name]) for methods in (ASYNC, BLOCKING))  # type: ignore[arg-type]
    assert one == other
    here, there = (ast.unparse(methods[name].args) for methods in (ASYNC, BLOCKING))  # type: ignore[attr-defined]
    assert here == there
