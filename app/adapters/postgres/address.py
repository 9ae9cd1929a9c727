"""Addresses of PostgreSQL databases."""

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict

from app.support.addresses import describe_address


def read_address(given: str) -> str:
    """Return the address as PostgreSQL's library takes it: without the driver that SQLAlchemy's has, and quotes.

    Raises `ValueError` for any other, with a sentence without the password.
    """
    address = re.sub(r"^postgres(?:ql)?\+\w+://", "postgresql://", given.strip("\"'"))
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        parts = {"port": "@"}  # what it says has the password in it
    # Behind a sign in the password that is not encoded the library reads the rest of it as these.
    if any("@" in str(parts.get(name, "")) for name in ("host", "port", "dbname")):
        raise ValueError(describe_address("postgresql://USER:PASSWORD@HOST:5432/NAME?sslmode=require", given))
    return address


def show_place(address: str) -> str:
    """Return host and port."""
    parts = conninfo_to_dict(address)
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}"
