"""The reference of the API as a page without scripts, made from the OpenAPI document.

Swagger UI's two files are 1.9 MB in the smallest package of them, and FastAPI's own page loads them from a public
network.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any

_STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif }
:root { color-scheme: light dark }
summary { cursor: pointer; padding: .4rem 0 } summary b { display: inline-block; min-width: 4.5rem }
details { border-bottom: 1px solid #8886 } pre { overflow-x: auto; background: #8882; padding: .6rem }
table { border-collapse: collapse } td { padding: .1rem 1rem .1rem 0; vertical-align: top }
code, pre { font-size: .9em }
"""

POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy."""


def render_reference(openapi: Mapping[str, Any]) -> str:
    """Render the OpenAPI document as HTML, one section for each tag."""
    title = escape(openapi["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{title} API</h1><p>{escape(openapi['info']['description'])} "
        'The same as <a href="/openapi.json">OpenAPI document</a>, for programs.</p>'
        f"{''.join(_render_tags(openapi))}</html>"
    )


def _render_tags(openapi: Mapping[str, Any]) -> Iterator[str]:
    sections: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["other"])[0]
            sections.setdefault(tag, []).append(_render_operation(method, path, operation, openapi))
    for tag, operations in sections.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(operations)}"


def _render_operation(method: str, path: str, operation: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [
        (parameter["name"], parameter["in"], _name_type(parameter["schema"]), parameter.get("description", ""))
        for parameter in operation.get("parameters", ())
    ]
    rows += _list_fields(operation.get("requestBody", {}), openapi)
    responses = "".join(
        f"<p><b>{escape(status)}</b> {escape(response['description'])}"
        f"{_render_table(_list_fields(response, openapi))}{_render_example(response)}"
        for status, response in operation["responses"].items()
    )
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code></summary>"
        f"<p>{escape(operation.get('description', ''))}{_render_table(rows)}{responses}</details>"
    )


def _list_fields(body: Mapping[str, Any], openapi: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (name, media_type, _name_type(field), field.get("description", ""))
        for media_type, content in body.get("content", {}).items()
        for name, field in _resolve(content["schema"], openapi).get("properties", {}).items()
    ]


def _render_table(rows: Sequence[tuple[str, ...]]) -> str:
    cells = ("".join(f"<td>{escape(cell)}" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}' for row in cells)}</table>"


def _render_example(response: Mapping[str, Any]) -> str:
    examples = [content["example"] for content in response.get("content", {}).values() if "example" in content]
    texts = [e if isinstance(e, str) else json.dumps(e, indent=1, ensure_ascii=False) for e in examples]
    return "".join(f"<pre>{escape(text)}</pre>" for text in texts)


def _resolve(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return openapi["components"]["schemas"][name] if name else schema


def _name_type(schema: Mapping[str, Any]) -> str:
    """Return a schema's type for people, such as `string or null`."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_name_type, schema["anyOf"])))
    return str(schema.get("type") or schema.get("$ref", "any").rpartition("/")[2])
