"""Every prompt has a version, and a changed prompt another one."""

import importlib
import pkgutil

import nodes
from domain.state import ExecutedStep, Usage
from graphs import prompt_versions
from graphs.answer import STEPS


def test_every_prompt_beside_a_node_is_counted() -> None:
    counted = {text for step in STEPS.values() for text in step.prompts}
    for module in pkgutil.walk_packages(nodes.__path__, "nodes."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if name.endswith("PROMPT") and isinstance(value, str):
                assert value in counted, f"{module.name}.{name}"


def test_a_version_is_of_the_text() -> None:
    assert prompt_versions._digest(["a"]) != prompt_versions._digest(["b"])
    assert len(set(prompt_versions.VERSIONS.values())) == len(prompt_versions.VERSIONS)


def test_only_what_was_asked_is_named() -> None:
    used = Usage(node="generate", model="m", calls=1, input_tokens=1, output_tokens=1, cost=None, estimated=False)
    steps = [
        ExecutedStep(node="route", ms=1, warnings=[], usage=[]),
        ExecutedStep(node="retrieve", ms=1, warnings=[], usage=[]),
        ExecutedStep(node="generate", ms=1, warnings=[], usage=[used]),
    ]
    assert prompt_versions.find_versions(steps) == {"generate": prompt_versions.VERSIONS["generate"]}
