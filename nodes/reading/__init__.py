"""Reading sources and questions without a language model: units, their scores, and words that contradict each other.

Only the steps' local judges (`local.py` in a step's folder) use it; `app/wiring/judges.py` builds them. They understand
English best: stop words, stems, opposites and small talk are English, and the embedding model that ships was trained on
English text. A question in another language is answered less often and verified less reliably; connect a language model
for such documents (docs/models.md).
"""
