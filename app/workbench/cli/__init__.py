COMMANDS = {
    "runs": "List runs that have ended, newest first: question, outcome, time, cost.",
    "why": "Say why a run ended as it did: searches, thresholds, sources, claims and doubts.",
    "show": "Show what happened in a run, step by step: changes, calls, candidates, verdicts.",
    "whatif": "Try what would have changed a run's end: sources, grade, knobs, mode.",
    "replay": "Run a run again, or continue from a saved state, in a new thread.",
    "diff": "Compare two runs: the first step where they part, and how both ended.",
    "export": "Write a run to a file that opens on any machine: states, tape, and what it cited.",
}
