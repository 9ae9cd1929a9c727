COMMANDS = {
    "serve": "Serve the pages and the API.",
    "mcp": "Speak the Model Context Protocol on standard input and output.",
    "worker": "Execute runs and read uploads for servers on the same database.",
    "models": "Show the language models in use and those found on this machine, or choose one.",
    "costs": "Show what answering has cost: runs, calls, tokens, dollars.",
    "prune": "Delete old conversations: their states, runs and tapes.",
    "keys": "Make, list and revoke API keys.",
    "audit": "Show who changed what: documents, conversations, keys.",
    "doctor": "Check a deployment: home, disk, database, cache, identity provider and models; or what is stored.",
}
