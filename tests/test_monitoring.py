"""What an operator sees: figures and alerts, and the examination of a deployment."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from app.adapters.postgres.monitoring import measure_feedback, measure_queues
from app.cli.operating.doctor import print_diagnoses
from app.settings import Settings
from app.support import metrics
from app.wiring.examination import examine
from app.wiring.services import Services
from domain.health import QueueDepth
from domain.people.access import Caller
from tests.asking import ask

TESTS = Path(__file__).parent
OPERATIONS = TESTS.parent / "docs" / "operations"


async def test_measures_and_examination_of_a_service(
    services: Services, library: dict[str, str], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await ask(services, mode="fast")
    assert settings.database_url
    url = settings.database_url.get_secret_value()
    assert await measure_feedback(url) == {"up": 0, "down": 0}
    await services.runs.feedback.put("default", done["run_id"], "down", None, "", Caller("ann"))
    assert await measure_feedback(url) == {"up": 0, "down": 1}
    assert (await measure_queues(url))["runs"] == QueueDepth(0, 0, 0.0)
    text = metrics.render(await services.measure()).decode()
    known = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    known |= {f"{name}_bucket" for name in known}
    for file in ("alerts.yml", "dashboard.json"):
        named = re.findall(r"\b(?:askgraph|process)_[a-z_]+", (OPERATIONS / file).read_text("utf-8"))
        assert set(named) <= known, file

    diagnoses = {each.part: each async for each in examine(settings)}
    assert {"home", "disk", "database", "pgvector", "schema", "write", "cache", "models"} == set(diagnoses)
    assert [each.part for each in diagnoses.values() if each.remedy and each.part != "disk"] == []

    nowhere = {"database_url": "postgresql://127.0.0.1:1/none", "redis_url": "redis://127.0.0.1:1"}
    away = settings.model_copy(update={name: SecretStr(url) for name, url in nowhere.items()})
    diagnoses = {each.part: each async for each in examine(away)}
    assert "DATABASE_URL" in str(diagnoses["database"].remedy)
    assert "refused" in diagnoses["database"].found
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
