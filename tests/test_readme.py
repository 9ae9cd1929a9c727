"""The README shows the graph as it is, and its example questions are there; so are the folders of CONTRIBUTING.md.
Commands and links are tried by `test_docs`."""

import re
from pathlib import Path

from app.drawing.diagram import draw_mermaid, read_graph
from app.evaluation.sets import read_sets
from app.serving.server import SAMPLE_QUESTION
from graphs.answer import build_answer_graph

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_diagram_is_drawn_from_the_compiled_graph() -> None:
    match = re.search(r"<!-- graph:.*?-->\n```mermaid\n(.*?)```\n<!-- /graph -->", README, re.DOTALL)
    assert match
    drawn = draw_mermaid(read_graph(build_answer_graph()))
    assert match[1].strip() == drawn.strip(), "update it with: curl http://127.0.0.1:8000/api/graph"


def test_the_folders_that_contributors_are_shown_exist() -> None:
    [tree] = re.findall(r"```\n(app/ .*?)```", CONTRIBUTING, re.DOTALL)
    for indent, named in re.findall(r"^( *)((?:\w+/ ?)+)", tree, re.MULTILINE):
        for folder in named.split():
            assert (ROOT / ("app" if indent else "") / folder).is_dir(), folder


def test_its_question_is_the_one_that_serve_suggests() -> None:
    assert SAMPLE_QUESTION in README


def test_its_questions_can_be_evaluated(tmp_path: Path) -> None:
    [rows] = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "ours.jsonl"
    file.write_text(rows, "utf-8")
    [each] = read_sets([str(file)], workspace="default", limit=None)
    assert [question.answerable for question in each.questions] == [True, False]
    assert each.questions[0].question == SAMPLE_QUESTION
