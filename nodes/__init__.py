"""The steps of the graph, one folder each with a `step.py`, and the rooms that they share: prompting, ranking, reading,
sources, wording, writing."""
