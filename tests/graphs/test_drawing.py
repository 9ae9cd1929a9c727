import re
import socket
from itertools import combinations
from typing import Any

import pytest

from app.drawing.diagram import Diagram, draw_ascii, draw_mermaid, read_graph
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


def test_mermaid_holds_every_edge_with_a_plain_label(diagram: Diagram) -> None:
    text = draw_mermaid(diagram)
    assert text.startswith("graph TD;")
    assert "&" not in text
    assert "<" not in text
    drawn = {
        (source, label or "", target)
        for source, label, target in re.findall(r"^ +(\w+) (?:-->|-\. (.+?) \.->) (\w+);$", text, re.MULTILINE)
    }
    assert drawn == edges_of(diagram)


def test_text_holds_every_edge_under_its_step_and_fits_a_terminal(diagram: Diagram) -> None:
    text = draw_ascii(diagram)
    drawn = set()
    step = ""
    for line in text.splitlines():
        if edge := re.fullmatch(r"  [|`]-- (.+?) -*--> (\w+)(?:   \(back\))?", line):
            drawn.add((step, edge[1].replace("always", ""), edge[2]))
        else:
            step = line
    assert drawn == edges_of(diagram)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120


def test_text_goes_from_start_to_end_and_marks_the_ways_back(diagram: Diagram) -> None:
    lines = draw_ascii(diagram).splitlines()
    steps = [line for line in lines if not line.startswith(" ")]
    assert steps[0] == "__start__"
    assert steps[-1] == "__end__"
    assert sorted(steps) == sorted(diagram.steps)
    back = [line.split("--> ")[1] for line in lines if line.endswith("(back)")]
    steps_back = "ask_back retrieve reformulate grade grade work describe generate degrade"
    assert back == [f"{step}   (back)" for step in steps_back.split()]


def test_json_places_every_step_apart_and_leads_its_edges_from_one_to_the_other(diagram: Diagram) -> None:
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
