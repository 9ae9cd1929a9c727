from app.drawing.diagram import STORED, read_graph, store_diagram
from graphs.answer import build_answer_graph

store_diagram(read_graph(build_answer_graph()))
print(f"Wrote {STORED}.")
