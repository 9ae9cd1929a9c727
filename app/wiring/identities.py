"""Opens what knows people by an identity provider."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from app.settings import Settings, reveal
from domain.health import Diagnosis
from domain.ports.identities import SignIn, TokenVerifier


@dataclass(frozen=True, slots=True)
class Identities:
    """The identity provider."""

    tokens: TokenVerifier | None = None
    """None without a provider."""
    sign_in: SignIn | None = None
    """None where the provider does not know this service as a client, so that people cannot sign in on the page."""


@asynccontextmanager
async def open_identities(settings: Settings) -> AsyncIterator[Identities]:
    """Open it, where a provider is configured. It is not asked for anything yet."""
    if settings.oidc_issuer is None:
        yield Identities()
        return
    # Importing joserfc takes 0.1 s, so only a deployment with a provider pays.
    from app.adapters.oidc.provider import OidcProvider
    from app.adapters.oidc.sign_in import Client, OidcSignIn
    from app.adapters.oidc.tokens import Claims, OidcTokens

    client_id = settings.oidc_client_id
    claims = Claims(settings.oidc_workspaces_claim, settings.oidc_groups_claim, settings.oidc_rights_claim)
    audiences = [name for name in (settings.oidc_audience, client_id) if name]
    async with aclosing(OidcProvider(settings.oidc_issuer)) as provider:
        tokens = OidcTokens(provider, audiences, claims)
        if client_id is None:
            yield Identities(tokens)
        else:
            client = Client(client_id, reveal(settings.oidc_client_secret), settings.oidc_scopes)
            yield Identities(tokens, OidcSignIn(provider, tokens, client))


async def examine_provider(settings: Settings) -> Diagnosis | None:
    """Examine the provider; None without one."""
    if settings.oidc_issuer is None:
        return None
    # As above.
    from app.adapters.oidc.provider import OidcProvider

    async with aclosing(OidcProvider(settings.oidc_issuer)) as provider:
        return await provider.examine(signs_in=settings.oidc_client_id is not None)
