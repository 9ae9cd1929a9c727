import socket
from itertools import combinations
from typing import Any

import pytest

from app.drawing.diagram import Diagram, read_graph
from app.drawing.layout import lay_out
from graphs.answer import STEPS, build_answer_graph


@pytest.fixture(scope="module")
def diagram() -> Diagram:
    return read_graph(build_answer_graph())


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a drawing opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def edges_of(diagram: Diagram) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.label or "", edge.target) for edge in diagram.edges}


def test_it_places_every_step_apart_and_leads_its_edges_from_one_to_the_other(diagram: Diagram) -> None:
    layout = lay_out(diagram)
    boxes = {}
    for step in layout["steps"]:
        left, top = step["x"] - step["width"] / 2, step["y"] - step["height"] / 2
        boxes[step["name"]] = box = (left, top, left + step["width"], top + step["height"])
        assert min(left, top) >= 0
        assert box[2] <= layout["width"]
        assert box[3] <= layout["height"]
    assert {"__start__", "__end__", *boxes} == set(diagram.steps)
    assert {step["name"]: step["label"] for step in layout["steps"]} == {n: step.label for n, step in STEPS.items()}
    for one, other in combinations(boxes.values(), 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
    told = {(edge["source"], edge["label"] or "", edge["target"]) for edge in layout["edges"]}
    assert told == {edge for edge in edges_of(diagram) if not {"__start__", "__end__"} & set(edge)}
    for edge in layout["edges"]:
        for point, box in ((edge["points"][0], boxes[edge["source"]]), (edge["points"][-1], boxes[edge["target"]])):
            assert box[0] - 0.2 <= point[0] <= box[2] + 0.2
            assert box[1] - 0.2 <= point[1] <= box[3] + 0.2
    # Grandalf's order of edges would otherwise be another one each time.
    assert all(lay_out(diagram) == layout for _ in range(5))
