"""Addresses of other services."""

import re
from urllib.parse import parse_qsl, urlsplit

_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


def is_safe_address(address: str) -> bool:
    """Return True for https, and for http on this machine: what comes over any other could be anybody's."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)


def is_same_server(one: str, other: str) -> bool:
    """Return True where both addresses are of one server: scheme, host and port."""
    try:
        parts = [urlsplit(each) for each in (one, other)]
        ports = [each.port or {"https": 443, "http": 80}.get(each.scheme) for each in parts]
    except ValueError:
        return False
    return (parts[0].scheme, parts[0].hostname, ports[0]) == (parts[1].scheme, parts[1].hostname, ports[1])


def read_api_address(given: str | None, route: str) -> tuple[str | None, dict[str, str]]:
    """Return the address of an API, also where the route is written out as a portal shows it, with what stands behind
    its `?`: `…/deployments/NAME` and the version, of `…/deployments/NAME/chat/completions?api-version=…`."""
    if not given:
        return None, {}
    parts = urlsplit(given)
    path = parts.path.rstrip("/").removesuffix(route)
    return parts._replace(path=path, query="", fragment="").geturl(), dict(parse_qsl(parts.query))


def describe_address(form: str, address: str) -> str:
    """Return what to write in place of an address that cannot be read, with its host and without its password."""
    host = re.match(r".*@([\w.-]+(?::\d+)?)(?=[/?]|$)", address, re.DOTALL)
    return (
        f"The address{f' of {host[1]}' if host else ''} cannot be read. It is written {form}; in the password, %40 "
        "stands for @, %25 for %, %2F for /, %3F for ?, %3A for :, %23 for #, %20 for a blank."
    )
