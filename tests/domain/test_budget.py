import pytest
from pydantic import ValidationError

from domain.execution.budget import Budget
from domain.state import ExecutedStep, Usage


def make_step(seconds: float, tokens: int = 0, cost: float | None = 0.0) -> ExecutedStep:
    usage = Usage(node="grade", model="m", calls=1, input_tokens=tokens, output_tokens=1, cost=cost, estimated=False)
    return ExecutedStep(node="grade", ms=seconds * 1000, warnings=[], usage=[usage] if tokens else [])


STEPS = [make_step(2), make_step(3, 99, 0.02), make_step(0, 199, None)]


@pytest.mark.parametrize(
    ("budget", "breach", "left"),
    [
        (Budget(), None, None),
        (Budget(seconds=5.5, tokens=301, dollars=0.03), None, (0.5, "seconds")),
        (Budget(seconds=5), "seconds", (0.0, "seconds")),
        (Budget(seconds=60, tokens=300), "tokens", (0.0, "tokens")),
        (Budget(dollars=0.02), "dollars", (0.0, "dollars")),
        (Budget(tokens=0), "tokens", (0.0, "tokens")),
    ],
)
def test_what_was_spent_is_the_sum_over_the_steps(
    budget: Budget, breach: str | None, left: tuple[float, str] | None
) -> None:
    assert budget.find_breach(STEPS) == breach
    assert budget.left(STEPS) == left


def test_a_budget_that_allows_nothing_is_reached_before_the_first_step() -> None:
    assert Budget(tokens=0).find_breach([]) == "tokens"
    assert Budget(tokens=1).find_breach([]) is None


def test_a_breach_names_what_was_allowed() -> None:
    assert "budget of $0.02." in Budget(dollars=0.02).explain("dollars")
    assert "budget of 300 tokens." in Budget(tokens=300).explain("tokens")


def test_a_run_needs_some_time() -> None:
    with pytest.raises(ValidationError):
        Budget(seconds=0)
