"""Builds the local judges: one implementation per port of `domain.ports.judgement`."""

from domain.ports.embedding import Embedder
from domain.ports.judgement import Judges
from domain.ports.unit_scoring import UnitScorer
from nodes.converse.local import LocalSmallTalk
from nodes.generate.local import LocalFinder
from nodes.grade.local import LocalGrader
from nodes.route.local.routing import LocalRouter
from nodes.route.local.standalone import LocalRewriter
from nodes.verify.local import LocalVerifier


def build_local_judges(embedder: Embedder, unit_scorer: UnitScorer) -> Judges:
    """Return the judges that need no language model. Their constants were fitted on the embedding model that ships, so
    `embedder` is that model, and `unit_scorer` runs it, whatever the index was made with."""
    return Judges(
        router=LocalRouter(embedder),
        rewriter=LocalRewriter(embedder),
        finder=LocalFinder(unit_scorer),
        grader=LocalGrader(unit_scorer),
        verifier=LocalVerifier(),
        small_talk=LocalSmallTalk(),
        embedding_model=embedder.name,
    )
