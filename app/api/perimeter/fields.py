"""Refuses fields of a request that its endpoint does not know. A misspelt one would be ignored without a word, and
what it was to limit or to name would not be."""

from collections.abc import Iterable, Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.params import Form
from fastapi.routing import APIRoute

from domain.errors import InputError
from domain.people.names import find_nearest


async def refuse_unknown_fields(route: APIRoute, request: Request) -> None:
    """Raise `InputError` for a field of the query or the form that the route does not declare, with the nearest that it
    does. Fields of JSON are refused by their models."""
    declared = set(_list_query(route.dependant))
    form = [field.alias for field in route.dependant.body_params]
    for name in request.query_params:
        if name not in declared:
            place = " It is a field of the form." if name in form else ""
            raise InputError(f"There is no query parameter {name!r} here.{place}{_suggest(name, declared)}")
    if form and request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data":
        if not any(isinstance(field.field_info, Form) for field in route.dependant.body_params):
            raise InputError("This takes JSON, and a form was sent: add the header Content-Type: application/json.")
        # FastAPI then takes the form that is read here, and closes it.
        sent = await request.form()
        for name in sent:
            if name not in form:
                await sent.close()
                place = " It is a parameter of the address." if name in declared else ""
                raise InputError(f"There is no field {name!r} in this form.{place}{_suggest(name, form)}")


def _list_query(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for each in dependant.dependencies:
        yield from _list_query(each)


def _suggest(name: str, known: Iterable[str]) -> str:
    nearest = find_nearest(name, known)
    return f" Did you mean {nearest!r}?" if nearest else ""
