"""Tells callers in headers what is left of their limits.

The headers are those of the IETF's draft "RateLimit header fields for HTTP": each names several limits, with units and
the seconds until they begin anew. Of `X-RateLimit-*` no two services mean the same, and they hold one limit.
"""

from collections.abc import Iterator
from math import floor
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from app.access.limits import Standing
from domain.people.limits import Limits, Used

Sent = TypeVar("Sent", bound=Response)


def add_limits(request: Request, response: Sent, used: Used | None = None) -> Sent:
    """Add what is left to the caller of this request, where they have limits. Returns the response. `used` is what they
    have used; None: as much as when the request came."""
    standing: Standing | None = getattr(request.state, "standing", None)
    if standing is not None:
        named = list(_describe(standing.limits, used or standing.used))
        response.headers["RateLimit-Policy"] = ", ".join(policy for policy, _ in named)
        response.headers["RateLimit"] = ", ".join(left for _, left in named)
    return response


def _describe(limits: Limits, used: Used) -> Iterator[tuple[str, str]]:
    """Yield policy and rest of each limit. The draft knows whole numbers only, so that dollars are told in cents."""
    if (most := limits.requests_per_minute) is not None:
        yield f'"requests";q={most};w=60', f'"requests";r={max(0, most - used.requests)};t={used.minute_ends}'
    if (most := limits.runs) is not None:
        yield f'"runs";q={most}', f'"runs";r={max(0, most - used.runs)}'
    if (most := limits.tokens_per_day) is not None:
        yield f'"tokens";q={most};w=86400', f'"tokens";r={max(0, most - used.tokens)};t={used.day_ends}'
    if (dollars := limits.dollars_per_day) is not None:
        left = max(0, floor(round((dollars - used.dollars) * 100, 6)))
        yield f'"cents";q={round(dollars * 100)};w=86400', f'"cents";r={left};t={used.day_ends}'
