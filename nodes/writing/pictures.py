"""Shows a model that sees the pages that its sources stand on."""

from collections.abc import Sequence

from domain.documents import Source
from domain.ports.models import ChatModel
from domain.ports.pictures import CitedPage, Picture
from domain.profile import Profile
from domain.scope import Scope
from nodes.context import Context
from nodes.prompting.messages import list_pages

_LOOKED_AT = 4
"""Pages looked at for each picture: most pages hold text alone."""


async def draw_pictures(
    model: ChatModel, sources: Sequence[Source], scope: Scope, profile: Profile, context: Context
) -> list[Picture]:
    """Return pictures of the pages of these sources that show more than text, the most relevant first; none for a model
    that does not see."""
    most = profile.generate.pictures
    if not most or not model.sees or context.pictures is None:
        return []
    pages = dict.fromkeys(
        CitedPage(source["document_id"], source["content_hash"], page)
        for source in sorted(sources, key=lambda source: -source["score"])
        if "content_hash" in source
        for page in list_pages(source)
    )
    return await context.pictures.draw(scope, list(pages)[: most * _LOOKED_AT], most) if pages else []
