"""Filters as JSON paths, against the same filters evaluated in Python."""

import json
import random
from typing import Any

import psycopg

from app.adapters.postgres.library.filters import write_paths
from domain.library.metadata import Metadata
from domain.library.where import Condition, Scalar, Where

VALUES: list[Scalar] = ["a", "b", "ab", "", "1", "true", 'x"y', "\\", "é", "\n", "%", "$.a", 1, 2, 1.5, -3, True, False]
KEYS = ["a", "b c", 'q"', "größe", "$", "a.b"]


def passes(metadata: Metadata, condition: Condition) -> bool:
    held = metadata.get(condition.key, [])
    return any(holds(value, condition) for value in (held if isinstance(held, list) else [held]))


def holds(value: Scalar, condition: Condition) -> bool:
    wanted: Any = condition.value
    if condition.operator == "in":
        return any(holds(value, Condition(condition.key, "eq", choice)) for choice in wanted)
    kinds = [bool if isinstance(each, bool) else str if isinstance(each, str) else float for each in (value, wanted)]
    if kinds[0] != kinds[1]:
        return False
    either: Any = value
    match condition.operator:
        case "eq":
            return bool(either == wanted)
        case "gt":
            return bool(either > wanted)
        case "gte":
            return bool(either >= wanted)
        case "lt":
            return bool(either < wanted)
        case "lte":
            return bool(either <= wanted)
        case "prefix":
            return str(either).startswith(str(wanted))
    raise AssertionError(condition.operator)


def make_condition(rng: random.Random) -> Condition:
    key, operator = rng.choice(KEYS), rng.choice(["eq", "in", "gt", "gte", "lt", "lte", "prefix"])
    if operator == "in":
        return Condition(key, "in", tuple(rng.sample(VALUES, rng.randint(1, 4))))
    kinds = (str,) if operator == "prefix" else (str, bool, int, float)
    values = [v for v in VALUES if isinstance(v, kinds) and (operator == "eq" or not isinstance(v, bool))]
    return Condition(key, operator, rng.choice(values))  # type: ignore[arg-type]


async def test_postgres_passes_what_the_filter_says(database_url: str) -> None:
    rng = random.Random(7)
    outcomes = set()
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        for _ in range(1500):
            where = Where.of({(c.key, c.operator): c for c in (make_condition(rng) for _ in range(2))}.values())
            metadata: Metadata = {
                key: rng.choice(VALUES) if rng.random() < 0.7 else rng.sample(VALUES, 3) for key in rng.sample(KEYS, 3)
            }
            path, _ = write_paths(where)
            cursor = await connection.execute("SELECT %s::jsonb @@ %s::jsonpath", [json.dumps(metadata), path])
            [passed] = await cursor.fetchone() or [None]
            wanted = all(passes(metadata, condition) for condition in where.conditions)
            assert bool(passed) == wanted, (metadata, str(where), path)
            outcomes.add(wanted)
    assert outcomes == {True, False}
