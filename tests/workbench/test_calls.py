from app.workbench.tapes.tape import Call
from domain.errors import ModelTimeout


def test_a_call_is_cut_until_it_ends() -> None:
    call = Call("Library", "list_recent", {"limit": 3}, step=1)
    assert call.cut
    call.end()
    assert not call.cut
    assert call.error is None


def test_a_call_that_failed_keeps_the_class_and_the_message() -> None:
    call = Call("ChatModel m", "judge", {}, step=2)
    call.end(ModelTimeout("Too slow."))
    assert (call.cut, call.error) == (False, ("ModelTimeout", "Too slow."))
