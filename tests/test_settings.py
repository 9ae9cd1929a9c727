"""What a deployment may set, and what it is told when it sets something wrong."""

import re
from pathlib import Path

import pytest

from app.adapters.redis.connection import RedisServer
from app.modes import read_modes
from app.settings import Settings, find_mistyped, read_settings, reveal
from domain.errors import ConfigurationError


def write(tmp_path: Path, content: bytes) -> Settings:
    file = tmp_path / "modes.toml"
    file.write_bytes(content)
    return read_settings(profiles=file)


def test_a_mode_of_ones_own_changes_what_it_names_and_keeps_the_rest(tmp_path: Path) -> None:
    modes = read_modes(
        write(tmp_path, b'[brief]\nextends = "thorough"\ngenerate.max_sentences = 2\n[briefer]\nextends = "brief"\n')
    )
    assert modes["brief"].name == "brief"
    assert modes["brief"].generate.max_sentences == 2
    assert modes["brief"].verify
    assert modes["brief"].rerank == modes["thorough"].rerank
    assert modes["briefer"].generate.max_sentences == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'[brief]\nextends = ["x"]', r"\[brief\] extends \['x'\]; it can extend one of fast, standard, thorough"),
        (b'[brief]\nextends = "nonsense"', r"\[brief\] extends 'nonsense'"),
        (b"[brief]\ngenerate.max_sentences = 0", r"\[brief\] generate.max_sentences: "),
        (b"[brief]\nnonsense = 1", r"\[brief\] nonsense: "),
        (b"[brief]\nrerank.mmr_lambda = 1", r"1.1.0 has no rerank.mmr_lambda any more: take it out"),
        (b"brief = 1", "'brief' is not a mode"),
        (b'["Standard"]', "'Standard' looks like 'standard'"),
        (b"[brief]\n['Brief']\n", "'Brief' looks like 'brief'"),
        ("['stаndard']".encode(), "looks like 'standard'"),
        (b'[brief]\nmodels.large = ""', r"\[brief\] models.large: '' is no name of a language model"),
        (b'[brief]\nmodels.judge = "openai:"', r"models.judge: 'openai:' is no name"),
        (b"[brief", "Expected"),
        (b"# caf\xe9", "utf-8"),
    ],
)
def test_a_wrong_profiles_file_is_said_in_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as raised:
        read_modes(write(tmp_path, content))
    assert "modes.toml cannot be used: " in raised.value.message
    assert "\n" not in raised.value.message


def test_a_profiles_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_modes(read_settings(profiles=tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("setting", "address", "is_read"),
    [
        ("DATABASE_URL", "postgresql://ask:Sec@ret@db.example:5999/ask", False),
        ("DATABASE_URL", "postgresql://ask:Sec/ret@db.example:5999/ask", False),
        ("DATABASE_URL", "postgresql://ask:Sec%ret@db.example:5999/ask", False),
        ("DATABASE_URL", "postgresql://ask:Sec ret@db.example:5999/ask", False),
        ("DATABASE_URL", "postgresql+asyncpg://ask:Sec%40ret@db.example:5999/ask", True),
        ("REDIS_URL", "redis://:Sec#ret@db.example:5999", False),
        ("REDIS_URL", "redis://:Sec%23ret@db.example:5999", True),
    ],
)
def test_an_address_that_cannot_be_read_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, setting: str, address: str, is_read: bool
) -> None:
    monkeypatch.setenv(setting, address)
    if is_read:
        assert "+" not in reveal(read_settings().database_url)
        return
    with pytest.raises(ConfigurationError, match=rf"{setting}: The address of db.example:5999 .*%40 stands") as raised:
        RedisServer(reveal(read_settings().redis_url))
    assert not re.search("Sec|ret", raised.value.message)


def test_wrong_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKGRAPH_MAX_DOCUMENT_MB", "many")
    monkeypatch.setenv("ASKGRAPH_MODEL_TIMEOUT", "0")
    with pytest.raises(
        ConfigurationError, match=r"max_document_mb: .*model_timeout: |model_timeout: .*max_document_mb: "
    ):
        read_settings()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("model_small", "gpt 5", "model_small: 'gpt 5' is no name of a language model"),
        (
            "openai_api_key",
            "sk-x\u200b",
            "openai_api_key: no key has a character like U+200B, the one at place 5: copy it anew",
        ),
        (
            "embeddings",
            "ada",
            "embeddings: 'ada' names no model: it is local, or begins with one of multilingual, folder, package, openai",
        ),
    ],
)
def test_a_name_that_cannot_be_one_is_said_in_words(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings(**{name: value})
    assert raised.value.message == f"Wrong settings. {says}" + (
        "; without this setting the default is used" * name.startswith("model")
    )


@pytest.mark.parametrize("copied", ["sk-x\n", '"sk-x"', "'sk-x'", "Bearer sk-x"])
def test_a_key_is_read_without_what_was_copied_with_it(copied: str) -> None:
    assert reveal(read_settings(openai_api_key=copied).openai_api_key) == "sk-x"


def test_a_pipeline_that_ships_is_read_by_its_name() -> None:
    modes = read_modes(read_settings(profiles=Path("disclosures")))
    assert modes.keys() == {"fast", "standard", "thorough", "research", "disclosures"}
    assert modes["disclosures"].retrieval.similarity_threshold == 0.6


def test_a_mode_of_ones_own_may_extend_a_pipeline(tmp_path: Path) -> None:
    modes = read_modes(write(tmp_path, b'[ours]\nextends = "workspace"\nretrieval.similarity_threshold = 0.5\n'))
    assert modes.keys() == {"fast", "standard", "thorough", "research", "ours"}
    assert modes["ours"].retrieval.similarity_threshold == 0.5
    assert modes["ours"].rerank.method == "model"
    assert modes["ours"].name == "ours"


def test_a_variable_that_is_nearly_a_setting_is_named() -> None:
    [said] = find_mistyped(
        ["ASKGRAPH_KEEP_STEPS_OF", "ASKGRAPH_HOME", "ASKGRAPH_PORT", "ASKGRAPH_SERVICE_HOST", "HOME"]
    )
    assert said == "ASKGRAPH_KEEP_STEPS_OF is no setting, and changes nothing. Did you mean ASKGRAPH_KEEP_STEPS?"
