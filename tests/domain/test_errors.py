import inspect

import pytest

from domain import errors
from domain.errors import AskgraphError, UnknownDocument

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, AskgraphError)]


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_says_something_when_raised_bare(error: type[AskgraphError]) -> None:
    message = error().message
    assert message.endswith((".", "`."))
    assert "\n" not in message
    assert str(error()) == message


def test_a_message_of_ones_own_takes_the_place_of_the_docstring() -> None:
    assert UnknownDocument("No document 7.").message == str(UnknownDocument("No document 7.")) == "No document 7."


def test_the_code_is_the_class_name_in_snake_case() -> None:
    assert UnknownDocument().code == "unknown_document"
    assert len({error().code for error in CLASSES}) == len(CLASSES)


def test_only_what_may_pass_by_itself_is_worth_another_try() -> None:
    retryable = {error.__name__ for error in CLASSES if error.retryable}
    assert {
        "Unavailable",
        "Draining",
        "DatabaseUnavailable",
        "ModelTimeout",
        "ThreadBusy",
        "ModelReplyCut",
    } <= retryable
    assert not {"InputError", "NotFound", "LibraryChanged", "EmbedderReplaced", "ConfigurationError"} & retryable
