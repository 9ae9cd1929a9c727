"""The reference of the API as a page, made from the OpenAPI document; `app/web/reference.js` sends what is filled in.

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
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
body { font: 16px/1.5 system-ui, sans-serif }
:root { color-scheme: light dark; background: Canvas }
summary { cursor: pointer; padding: .4rem 0 } summary b { display: inline-block; min-width: 4.5rem }
details { border-bottom: 1px solid #8886 } pre { white-space: pre-wrap; background: #8882; padding: .6rem }
table { border-collapse: collapse } td { padding: .1rem 1rem .1rem 0; vertical-align: top; overflow-wrap: break-word }
@media (max-width: 40rem) { td { display: block } td:first-child { font-weight: 600 } }
code, pre { font-size: .9em } output { white-space: pre-wrap; display: block }
input, button { min-height: 1.6rem } td input { width: 100% }
textarea { width: 100%; box-sizing: border-box } textarea, output { font: .9em monospace }
"""

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The page's Content-Security-Policy."""


def render_reference(openapi: Mapping[str, Any]) -> str:
    """Render the OpenAPI document as HTML, one section for each tag."""
    title = escape(openapi["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<main><h1>{title} API</h1><p>{escape(openapi['info']['description'])} "
        'The same as <a href="/openapi.json">OpenAPI document</a>, for programs.</p>'
        '<p><label>Key, where the service needs one: <input id="key" type="password" autocomplete="off"></label>'
        f"{''.join(_render_tags(openapi))}<h2>Types</h2>{''.join(_render_types(openapi))}</main>"
        '<script type="module" src="/web/reference.js"></script></html>'
    )


def _render_tags(openapi: Mapping[str, Any]) -> Iterator[str]:
    sections: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["other"])[0]
            sections.setdefault(tag, []).append(_render_operation(method, path, operation, openapi))
    for tag, operations in sections.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(operations)}"


def _render_types(openapi: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the types of fields hold, to which their names lead."""
    for name, schema in sorted(openapi["components"]["schemas"].items()):
        rows = [_describe(field, each, each) for field, each in schema.get("properties", {}).items()]
        yield (
            f'<h3 id="{escape(name)}">{_shorten(name)}</h3><p>{escape(schema.get("description", ""))}'
            f"{_render_table(rows)}"
        )


def _render_operation(method: str, path: str, operation: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    rows = [
        (*_describe(parameter["name"], parameter["schema"], parameter), _render_input(parameter, parameter["in"]))
        for parameter in operation.get("parameters", ())
    ]
    body = ""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolve(content["schema"], openapi)
        fields = schema["properties"]
        if media_type == "application/json":
            rows += [(*_describe(name, field, field), "") for name, field in fields.items()]
            # A value of each field's type, to be written over.
            example = {
                name: fields[name].get("enum", [[] if fields[name].get("type") == "array" else ""])[0]
                for name in schema.get("required", ())
            }
            text = escape(json.dumps(example, indent=1))
            body = f'<p><label>Body<textarea name="body" data-in="json" rows="6">{text}</textarea></label>'
        else:
            rows += [
                (*_describe(name, field, field), _render_input({"name": name, "schema": field}, "form"))
                for name, field in fields.items()
            ]
    responses = "".join(
        f"<p><b>{escape(status)}</b> {escape(response['description'])}"
        f"{_render_table(_list_fields(response, openapi))}{_render_example(response)}"
        for status, response in operation["responses"].items()
    )
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> {escape(operation['summary'])}"
        f'</summary><p>{escape(operation["description"])}<form data-method="{method.upper()}" '
        f'data-path="{escape(path)}">{_render_table(rows)}{body}<p><button>Send</button><output></output></form>'
        f"{responses}</details>"
    )


def _describe(name: str, schema: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[str, ...]:
    return escape(name), _name_type(schema), escape(described.get("description", ""))


def _render_input(parameter: Mapping[str, Any], place: str) -> str:
    """Render where a value of a parameter is filled in; of a list, one on each line."""
    schema = parameter["schema"]
    named = f'name="{escape(parameter["name"])}" data-in="{place}" aria-label="{escape(parameter["name"])}"'
    needed = " required" if parameter.get("required") else ""
    if schema.get("items", {}).get("format") == "binary" or "contentMediaType" in schema.get("items", {}):
        return f'<input type="file" multiple {named}{needed}>'
    if any(each.get("type") == "array" for each in (schema, *schema.get("anyOf", ()))):
        return f'<textarea rows="1" {named}{needed}></textarea>'
    return f"<input {named}{needed}>"


def _list_fields(body: Mapping[str, Any], openapi: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        _describe(name, field, field)
        for content in body.get("content", {}).values()
        for name, field in _resolve(content["schema"], openapi).get("properties", {}).items()
    ]


def _render_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Render rows of HTML."""
    cells = ("".join(f"<td>{cell}" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}' for row in cells)}</table>"


def _render_example(response: Mapping[str, Any]) -> str:
    examples = [content["example"] for content in response.get("content", {}).values() if "example" in content]
    texts = [e if isinstance(e, str) else json.dumps(e, indent=1, ensure_ascii=False) for e in examples]
    return "".join(f"<pre>{escape(text)}</pre>" for text in texts)


def _resolve(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return openapi["components"]["schemas"][name] if name else schema


def _name_type(schema: Mapping[str, Any]) -> str:
    """Return a schema's type as HTML for people, such as `string or null`. A type of ours leads to what it holds."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_name_type, schema["anyOf"])))
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f'<a href="#{escape(name)}">{_shorten(name)}</a>'
    if schema.get("type") == "array":
        return f"list of {_name_type(schema.get('items', {}))}"
    return escape(" or ".join(schema.get("enum", ())) or str(schema.get("type", "any")))


def _shorten(name: str) -> str:
    """Leave out the module that pydantic puts before one of two types of one name."""
    return escape(name.rpartition("__")[2])
