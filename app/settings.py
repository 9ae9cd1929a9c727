"""The settings of a deployment, which the entry points read from the environment; never read at import."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError
from domain.profile import MODES, ModelName, Profile
from domain.retention import STEPS_OF, Policy

PIPELINES = Path(__file__).parent / "pipelines"


def _default_home() -> Path:
    return Path("~/.askgraph").expanduser()


class Settings(BaseSettings):
    """Settings from `ASKGRAPH_*` variables, and from those of other tools: `DATABASE_URL`, `REDIS_URL`, `OPENAI_*`."""

    model_config = SettingsConfigDict(env_prefix="ASKGRAPH_", populate_by_name=True, env_ignore_empty=True)

    home: Path = Field(default_factory=_default_home)
    """The folder of the embedded servers' data."""
    database_url: SecretStr | None = Field(None, validation_alias=AliasChoices("DATABASE_URL"))
    """An external Postgres with pgvector; unset: an embedded one."""
    redis_url: SecretStr | None = Field(None, validation_alias=AliasChoices("REDIS_URL"))
    """An external Redis or Valkey; unset: an embedded one."""
    openai_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("OPENAI_API_KEY"))
    openai_base_url: str | None = Field(None, validation_alias=AliasChoices("OPENAI_BASE_URL"))
    anthropic_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("ANTHROPIC_API_KEY"))
    anthropic_base_url: str | None = Field(None, validation_alias=AliasChoices("ANTHROPIC_BASE_URL"))
    google_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("GOOGLE_API_KEY", "GEMINI_API_KEY"))
    google_base_url: str | None = Field(None, validation_alias=AliasChoices("GOOGLE_GEMINI_BASE_URL"))
    model_small: ModelName = "gpt-5-nano"
    """Routes, grades and reformulates. Model names may have a provider: `anthropic:NAME`."""
    model_large: ModelName = "gpt-5-mini"
    """Writes answers."""
    model_judge: ModelName = "gpt-4.1-mini"
    """Verifies answers in modes that do. Not the model that writes, which would overlook its own mistakes."""
    model_fallbacks: Annotated[tuple[str, ...], NoDecode] = ()
    """Models to ask, in this order, where a step's own model fails; separated by commas."""
    model_timeout: float = Field(60, gt=0)
    """Limit of one model call, in seconds."""
    embeddings: str = "local"
    """The embedding model: `local` is the one that ships; `openai:MODEL` or `openai:MODEL@DIMENSION` is behind OpenAI's
    API. A model other than the index's is refused: run `askgraph reindex`."""
    embeddings_api_key: SecretStr | None = None
    """Unset: OpenAI's key, unless `embeddings_base_url` names another server, which must not see it."""
    embeddings_base_url: str | None = None
    """Unset: OpenAI's address."""
    prices: Path | None = None
    """A TOML file of model prices in the form of `app/adapters/prices.toml`, which it extends or overrides."""
    cross_encoder: Path | None = None
    """A folder with `model.onnx` and `tokenizer.json`: the reranker of modes with `rerank.method = "cross_encoder"`."""
    cohere_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("COHERE_API_KEY"))
    cohere_base_url: str | None = Field(None, validation_alias=AliasChoices("COHERE_BASE_URL"))
    """A server that speaks Cohere's rerank API; unset: Cohere."""
    rerank_model: str = "rerank-v3.5"
    """The reranker of modes with `rerank.method = "cohere"`."""
    pgvectorstore: Path | None = None
    """A TOML file that says which table of langchain-postgres' `PGVectorStore` is the library, in place of what
    askgraph ingests (`app/adapters/pgvectorstore/`)."""
    pgvectorstore_url: SecretStr | None = None
    """The table's database; unset: `database_url`."""
    profiles: Path | None = None
    """A TOML file of modes, each of which may say what it `extends`; or the name of a shipped pipeline."""
    load_samples: bool = True
    """True if `askgraph serve` loads the sample library into an empty default workspace."""
    max_document_mb: int = Field(50, ge=1)
    answer_ttl_hours: float = Field(24, gt=0)
    """Lifetime of a cached answer, in hours."""
    tapes: bool = True
    """True if runs are taped, so that they can be replayed without a call."""
    untaped_workspaces: Annotated[frozenset[str], NoDecode] = frozenset()
    """Names of workspaces whose runs are not taped, separated by commas."""
    retention: Annotated[Policy, NoDecode] = Policy()
    """How long threads are kept after their last run, such as `90d`; workspaces may have spans of their own:
    `90d,acme=7d,legal=keep`."""
    keep_steps_of: int = Field(STEPS_OF, ge=1)
    """Number of recent runs per thread that keep every step; older runs keep their final state."""

    @field_validator("retention", mode="before")
    @classmethod
    def _read_policy(cls, value: Any) -> Any:
        return Policy.parse(value) if isinstance(value, str) else value

    @field_validator("embeddings")
    @classmethod
    def _check_embeddings(cls, value: str) -> str:
        if not re.fullmatch(r"local|openai:\S+", value):
            raise PydanticCustomError(
                "embeddings",
                "{given} is none of local, openai:MODEL and openai:MODEL@DIMENSION",
                {"given": repr(value)},
            )
        return value

    @field_validator("untaped_workspaces", "model_fallbacks", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def read_settings(**overrides: Any) -> Settings:
    """Read the settings of this process.

    Raises `ConfigurationError`, which names each wrong variable.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigurationError(f"Wrong settings. {list_problems(error)}") from error


def read_modes(settings: Settings) -> dict[str, Profile]:
    """Return the shipped modes and the deployment's own.

    A profiles file looks like this::

        [brief]
        extends = "standard"
        generate.citation_style = "source"
        generate.max_sentences = 2

    Raises `ConfigurationError` where the file cannot be read or sets a knob that does not exist.
    """
    modes = dict(MODES)
    if settings.profiles is not None:
        pipelines = _find_pipelines()
        path = settings.profiles
        if not path.is_file():
            path = pipelines.get(str(path), path)
        modes |= _read_profiles(path, pipelines)
    for mode in modes.values():
        if (mode.models.timeout or 0) > settings.model_timeout:
            raise ConfigurationError(
                f"The mode {mode.name!r} waits {mode.models.timeout:g} s for its models, and every step ends after "
                f"ASKGRAPH_MODEL_TIMEOUT, {settings.model_timeout:g} s. Raise that, or lower models.timeout."
            )
    return modes


def _find_pipelines() -> dict[str, Path]:
    """Return the shipped profiles files by name; each reproduces a known pipeline."""
    return {file.stem: file for file in sorted(PIPELINES.glob("*.toml"))}


def _read_profiles(path: Path, pipelines: dict[str, Path]) -> dict[str, Profile]:
    unusable = f"The profiles file {path} cannot be used: "
    tables = read_toml(path, "profiles file")
    modes: dict[str, Profile] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigurationError(f"{unusable}{name!r} is not a mode. A mode is a table: [{name}].")
        extended = table.pop("extends", "standard")
        known = MODES | modes
        if isinstance(extended, str) and extended not in known and extended in pipelines:
            known |= _read_profiles(pipelines[extended], {})
        if not isinstance(extended, str) or extended not in known:
            raise ConfigurationError(
                f"{unusable}[{name}] extends {extended!r}; it can extend one of {', '.join([*known, *pipelines])}, "
                "or a mode that stands above it."
            )
        try:
            modes[name] = Profile.model_validate(merge_knobs(known[extended].model_dump(), table) | {"name": name})
        except ValidationError as error:
            raise ConfigurationError(f"{unusable}[{name}] {list_problems(error)}.") from error
    return modes


def merge_knobs(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `changes` applied, group by group."""
    merged = dict(base)
    for key, value in changes.items():
        known = merged.get(key)
        merged[key] = merge_knobs(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def reveal(secret: SecretStr | None) -> str:
    """Return the secret in plain text; empty where it is not set."""
    return secret.get_secret_value() if secret else ""
