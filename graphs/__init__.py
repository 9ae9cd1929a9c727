"""What happens in which order: `answer.py` is the graph, `decisions.py` its edges; the rest runs its steps."""
