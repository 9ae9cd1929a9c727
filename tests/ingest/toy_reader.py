"""A toy file format for the tests of the registry: `key = value` lines."""

from app.ingest.readers.assembly import Assembly
from domain.documents import ParsedDocument


def read_toy(source: str, data: bytes) -> ParsedDocument:
    assembly = Assembly()
    for line in data.decode().splitlines():
        assembly.add_block(line.replace(" = ", " is "))
    return assembly.finish("A toy", source)
