"""LangGraph's Agent Server API over our runs, under `/langgraph`: for its SDKs, `RemoteGraph` and Agent Chat UI.

Assistants are the modes and those of the team. The state of a thread is its messages, and of its last question what
`/api/chat` answers.
"""
