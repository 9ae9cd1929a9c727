"""The name under which LangGraph's checkpointer keeps a thread."""


def state_key(workspace_id: str, thread_id: str) -> str:
    """Return the key of a thread's saved states. LangGraph knows threads by one text, so it holds both ids: whoever
    asks chooses the thread's, and never the workspace's. Neither has a slash (`domain.people.names`), so no two threads
    share a key."""
    return f"{workspace_id}/{thread_id}"


def split_key(key: str) -> tuple[str, str]:
    """Return the workspace and the thread of a key; no workspace where it has none, as in an evaluation."""
    workspace_id, slash, thread_id = key.rpartition("/")
    return (workspace_id, thread_id) if slash else ("", key)
