"""Judgement without a language model.

Each port of `domain.ports.judgement` has its implementation here; `judges.py` wires them.

    port                 implementation
    QuestionRouter       routing/
    FollowUpRewriter     standalone.py
    AnswerFinder         extraction/
    SourceGrader         grading/
    QueryReformulator    reformulation.py
    ClaimVerifier        verification/
    SmallTalk            smalltalk.py

`reading/` is shared by finding and grading: the statements of a source, and what a question asks for.

It understands English only. Stop words, stems, patterns, opposites and small talk are English, and the embedding model
that ships was trained on English text. A question in another language is answered less often and verified less
reliably; connect a language model for such documents (docs/models.md).
"""
