"""Addresses of other services."""

from urllib.parse import urlsplit

_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


def is_safe_address(address: str) -> bool:
    """Return True for https, and for http on this machine: what comes over any other could be anybody's."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)
