"""What the files for containers promise."""

import re
from pathlib import Path
from typing import Any

import yaml

from domain.profile import MODES

ROOT = Path(__file__).parents[1]


def test_compose_starts_with_no_password_of_its_own() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    services = yaml.safe_load(compose)["services"]
    assert compose.count("${POSTGRES_PASSWORD:?") == compose.count("${POSTGRES_PASSWORD") == 2
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert services["grafana"]["environment"]["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"


def test_the_proxy_waits_for_whole_answers_of_the_slowest_mode() -> None:
    waits = map(int, re.findall(r"proxy_read_timeout (\d+)s;", (ROOT / "deploy/nginx.conf").read_text()))
    assert max(waits) >= max((mode.budget.seconds or 0) + mode.generate.answer_seconds for mode in MODES.values())


def test_a_policy_says_who_may_reach_each_pod_and_whom_it_may_reach() -> None:
    documents: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "deploy/kubernetes/askgraph.yaml").read_text()))
    [policy] = [each["spec"] for each in documents if each["kind"] == "NetworkPolicy"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    wanted = policy["podSelector"]["matchLabels"].items()
    templates = [each["spec"]["template"] for each in documents if each["kind"] == "Deployment"]
    assert len(templates) == 2
    open_ports = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    for template in templates:
        assert wanted <= template["metadata"]["labels"].items()
        assert {int(template["metadata"]["annotations"]["prometheus.io/port"])} <= open_ports
    assert all(rule["from"] for rule in policy["ingress"])
