"""Judgement without a language model.

`judges.py` builds an implementation of each port of `domain.ports.judgement`.

It understands English only. Stop words, stems, patterns, opposites and small talk are English, and the embedding model
that ships was trained on English text. A question in another language is answered less often and verified less
reliably; connect a language model for such documents (docs/models.md).
"""
