COMMANDS = {
    "ask": "Ask a question and stream the answer with its sources.",
    "eval": "Measure how well questions are answered, or make a set of what readers rated.",
}
