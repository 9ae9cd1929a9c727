"""Opens a span for each request."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.support.spans import span


class TraceRequests:
    """Opens the span of a request, below that of its caller where the header `traceparent` names one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The path of a route without its ids would only be known afterwards.
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with span(f"{scope['method']} {scope['path']}", attributes, Headers(scope=scope).get("traceparent")):
            await self._app(scope, receive, send)
