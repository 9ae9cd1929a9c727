"""docs/models.md agrees with the settings and the price table, and its example files can be read."""

import re
from pathlib import Path

from app.adapters.prices import read_prices
from app.modes import read_modes
from app.settings import read_settings
from app.wiring.functions import connect_functions

PAGE = (Path(__file__).parent.parent / "docs" / "models.md").read_text("utf-8")


def test_the_defaults_and_their_prices_are_those_of_the_code() -> None:
    settings, table = read_settings(), read_prices()
    rows = re.findall(r"^\| `ASKGRAPH_MODEL_(\w+)` \| `([\w.-]+)` \| [^|]+ \| ([\d., ]+) \|$", PAGE, re.MULTILINE)
    assert [(tier, name) for tier, name, _ in rows] == [
        ("SMALL", settings.model_small),
        ("LARGE", settings.model_large),
        ("JUDGE", settings.model_judge),
    ]
    for _, name, prices in rows:
        assert tuple(float(price) for price in prices.split(",")) == table.chat[name]


def test_its_files_are_read(tmp_path: Path) -> None:
    profiles, servers, team, prices = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "profiles.toml").write_text(profiles)
    (tmp_path / "prices.toml").write_text(prices)
    mode = read_modes(read_settings(profiles=tmp_path / "profiles.toml"))["careful"]
    assert (mode.models.judge, mode.models.timeout, mode.verify) == ("gpt-4.1", 30, True)
    (tmp_path / "servers.toml").write_text(servers)
    (tmp_path / "profiles.toml").write_text(team)
    own = read_settings(profiles=tmp_path / "profiles.toml", mcp_servers=tmp_path / "servers.toml")
    assert connect_functions(own, read_modes(own)) is not None
    assert read_prices(tmp_path / "prices.toml").price("qwen3:8b", 1000, 0, 1000) == 0
