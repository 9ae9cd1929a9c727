"""What an operator sees: statistics beside targets, and the examination of a deployment."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from app.adapters.postgres.monitoring import measure_feedback, measure_queues, read_statistics
from app.cli.operating.doctor import print_diagnoses
from app.cli.operating.stats import print_statistics
from app.history.statistics import compare
from app.settings import Settings
from app.support import metrics
from app.wiring.examination import examine
from app.wiring.services import Services
from domain.health import QueueDepth
from domain.runs import RunStatistics
from tests.asking import ask

TESTS = Path(__file__).parent
OPERATIONS = TESTS.parent / "docs" / "operations"

NOTHING = RunStatistics(
    runs=0, cached=0, failed=0, stopped=0, answered=0, abstained=0, degraded=0, liked=0, disliked=0, unpriced=0,
    cost=None, retrieval_ms=None, own_ms=None, cached_ms=None,
)  # fmt: skip


def test_figures_are_compared_with_targets() -> None:
    found = replace(
        NOTHING,
        runs=10,
        liked=1,
        disliked=3,
        answered=6,
        abstained=4,
        retrieval_ms=199.0,
        own_ms=700.0,
        cost=0.1,
        failed=1,
        cached_ms=2.0,
    )
    verdicts = {row["name"]: row["verdict"] for row in compare(found)}
    assert verdicts == {
        "search, p95": "ok",
        "all but writing, p95": "missed",
        "cached answer, p95": "ok",
        "abstained": "missed",
        "thumbs down": "alert",
        "degraded": "ok",
        "failed": "alert",
        "cost a question": "ok",
    }
    assert {row["verdict"] for row in compare(NOTHING)} == {"unknown"}


async def test_statistics_and_examination_of_a_service(
    services: Services, library: dict[str, str], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await ask(services, mode="fast")
    assert settings.database_url
    url = settings.database_url.get_secret_value()
    found = await read_statistics(url, datetime.now(UTC) - timedelta(hours=1))
    assert (found.runs, found.answered, found.failed, found.cached) == (1, 1, 0, 0)
    assert found.retrieval_ms is not None
    assert found.own_ms is not None
    assert found.own_ms > found.retrieval_ms > 0
    assert await measure_feedback(url) == {"up": 0, "down": 0}
    await services.runs.feedback.put("default", done["run_id"], "down", None, "", "ann")
    assert await measure_feedback(url) == {"up": 0, "down": 1}
    assert (await measure_queues(url))["runs"] == QueueDepth(0, 0, 0.0)
    text = metrics.render(await services.measure()).decode()
    known = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    known |= {f"{name}_bucket" for name in known}
    for file in ("alerts.yml", "dashboard.json"):
        named = re.findall(r"\b(?:askgraph|process)_[a-z_]+", (OPERATIONS / file).read_text("utf-8"))
        assert set(named) <= known, file
    print_statistics("today", found, compare(found))
    assert "1 run, of which 0 from the cache" in capsys.readouterr().out

    diagnoses = {each.part: each async for each in examine(settings)}
    assert {"home", "disk", "database", "pgvector", "schema", "write", "cache", "models"} == set(diagnoses)
    assert [each.part for each in diagnoses.values() if each.remedy and each.part != "disk"] == []

    nowhere = {"database_url": "postgresql://127.0.0.1:1/none", "redis_url": "redis://127.0.0.1:1"}
    away = settings.model_copy(update={name: SecretStr(url) for name, url in nowhere.items()})
    diagnoses = {each.part: each async for each in examine(away)}
    assert "DATABASE_URL" in str(diagnoses["database"].remedy)
    assert "REDIS_URL" in str(diagnoses["cache"].remedy)
    print_diagnoses(list(diagnoses.values()))
    assert "DATABASE_URL" in capsys.readouterr().out


def test_every_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((OPERATIONS / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
    assert all({"summary", "action"} == set(rule["annotations"]) for rule in rules)


def test_alerts_fire_when_they_should_and_panels_can_be_drawn(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        reason = "There is no promtool on the PATH; `make test` installs it."
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    panels = json.loads((OPERATIONS / "dashboard.json").read_text("utf-8"))["panels"]
    drawn = [{"record": "drawn", "expr": target["expr"]} for panel in panels for target in panel["targets"]]
    labelled = [rule | {"labels": {"query": str(number)}} for number, rule in enumerate(drawn)]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": labelled}]}))
    for command in (
        ("check", "rules", tmp_path / "panels.yml"),
        ("check", "rules", OPERATIONS / "alerts.yml"),
        ("test", "rules", TESTS / "alert_rules.yml"),
    ):
        checked = subprocess.run([promtool, *command], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr
