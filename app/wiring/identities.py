"""Opens the check of an identity provider's tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.settings import Settings
from domain.ports.identities import TokenVerifier


@asynccontextmanager
async def open_tokens(settings: Settings) -> AsyncIterator[TokenVerifier | None]:
    """Open the check, where a provider is configured. The provider is not asked for anything yet."""
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        yield None
        return
    from app.adapters.oidc import Claims, OidcTokens

    claims = Claims(settings.oidc_workspaces_claim, settings.oidc_groups_claim, settings.oidc_rights_claim)
    tokens = OidcTokens(settings.oidc_issuer, settings.oidc_audience, claims)
    try:
        yield tokens
    finally:
        await tokens.aclose()
