"""The settings of a deployment. The entry points read them from the environment; nothing reads them at import."""

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from app.adapters.chat.providers import PACKAGES, Access
from app.adapters.embeddings.registry import EMBEDDERS
from app.chosen_models import ChosenModels
from app.ingest.parser_process import MEMORY_MB, SECONDS
from app.support.addresses import is_safe_address
from app.support.logs import LogFormat
from app.support.toml_files import list_problems
from domain.errors import ConfigurationError
from domain.history.retention import KEEP, Policy, parse_age
from domain.library.storage import StorageLimit
from domain.model_names import ModelName
from domain.people.limits import Limits

_MODELS = {"model", "model_small", "model_large", "model_judge"}


def _is_strange(value: str | SecretStr) -> bool:
    return bool(re.search(r"[^\x20-\x7e]", value if isinstance(value, str) else value.get_secret_value()))


def _default_home() -> Path:
    return Path("~/.askgraph").expanduser()


class Settings(BaseSettings):
    """Settings from `ASKGRAPH_*` variables, and from those of other tools: `DATABASE_URL`, `REDIS_URL`, `OPENAI_*`."""

    model_config = SettingsConfigDict(env_prefix="ASKGRAPH_", populate_by_name=True, env_ignore_empty=True)

    home: Path = Field(default_factory=_default_home)
    """The folder in which embedded Postgres and Valkey keep data and logs. Processes with the same one share these
    servers; two run side by side."""
    database_url: SecretStr | None = Field(None, validation_alias=AliasChoices("DATABASE_URL"))
    """An external Postgres with pgvector; unset: an embedded one."""
    redis_url: SecretStr | None = Field(None, validation_alias=AliasChoices("REDIS_URL"))
    """An external Redis or Valkey, one server or a cluster; unset: an embedded one."""
    pgvectorstore: Path | None = None
    """A TOML file that says which table of langchain-postgres' `PGVectorStore` is the library, in place of what
    askgraph ingests (`app/adapters/pgvectorstore/`)."""
    pgvectorstore_url: SecretStr | None = None
    """The table's database; unset: `database_url`."""
    originals: str = "database"
    """The place of the files that documents were read from: `database`, or `s3://BUCKET/PREFIX` in S3-compatible
    storage, whose keys and address are read from `AWS_*`."""
    max_documents: int | None = Field(None, ge=1)
    """Number of documents that a workspace may hold; unset: no limit."""
    max_stored_mb: int | None = Field(None, ge=1)
    """Megabytes of files that a workspace may hold; unset: no limit."""
    max_document_mb: int = Field(50, ge=1)
    """Larger files are refused, in megabytes."""
    sync_login: SecretStr | None = None
    """`USER:PASSWORD@HOST`: with these `askgraph sync` reads websites and WebDAV folders of that host, and no other."""
    parser_seconds: float = Field(SECONDS, gt=0)
    """Computing time in seconds that reading a small file may take. Each megabyte of the file adds ten."""
    parser_memory_mb: int = Field(MEMORY_MB, ge=256)
    """Memory that reading a file may take, in megabytes. A process reads as many files at once as it has processors, at
    least two."""
    load_samples: bool = True
    """If true, `askgraph serve` loads the sample library into a default workspace that never held a document."""
    openai_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("OPENAI_API_KEY"))
    """For models behind OpenAI's API; key or address is enough."""
    openai_api_key_file: Path | None = Field(None, validation_alias=AliasChoices("OPENAI_API_KEY_FILE"))
    """A file with that key, read anew for each request: for tokens that expire, which another program writes."""
    openai_base_url: str | None = Field(None, validation_alias=AliasChoices("OPENAI_BASE_URL"))
    """A server that speaks OpenAI's API; unset: OpenAI."""
    anthropic_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("ANTHROPIC_API_KEY"))
    """For models named `anthropic:…`."""
    anthropic_base_url: str | None = Field(None, validation_alias=AliasChoices("ANTHROPIC_BASE_URL"))
    """Unset: Anthropic."""
    model: ModelName | None = None
    """Writes answers, and everything else is judged locally, where no setting below says otherwise."""
    model_small: ModelName = "gpt-5-nano"
    """Routes, and makes small talk. Model names may have a provider: `anthropic:NAME`; `none` is no model."""
    model_large: ModelName = "gpt-5-mini"
    """Writes answers."""
    model_judge: ModelName = "gpt-4.1-mini"
    """Verifies answers in modes that do. Not the model that writes, which would overlook its own mistakes."""
    model_fallbacks: Annotated[tuple[str, ...], NoDecode] = ()
    """Models to ask, in this order, where a step's own model fails; separated by commas."""
    models_that_see: Annotated[tuple[str, ...], NoDecode] = ()
    """Models that see pictures of pages (`generate.pictures`), in addition to those that are known to; separated by
    commas."""
    model_headers: Annotated[dict[str, SecretStr], NoDecode] = {}
    """Sent with every request to the server at `OPENAI_BASE_URL`, or that of a model that `askgraph models use` has
    chosen on this machine, as gateways want them: `{"x-portkey-config": "pc-1"}`. Another address that an administrator
    names on the page does not get them."""
    model_timeout: float = Field(60, gt=0)
    """Limit of one model call, in seconds."""
    embeddings: str = "local"
    """The embedding model: `local` is the one that ships, for English; `multilingual` is the one of
    `askgraph[multilingual]`; `openai:MODEL` or `openai:MODEL@DIMENSION` is one behind
    OpenAI's API; `folder:PATH` and `package:MODULE` are one of your own, with its `model.toml`. A model other than the
    documents' is refused; `askgraph ingest --embed-again` embeds them with it."""
    embeddings_base_url: str | None = None
    """Unset: OpenAI's address."""
    embeddings_api_key: SecretStr | None = None
    """Unset: OpenAI's key, unless `embeddings_base_url` names another server, which must not see it."""
    prices: Path | None = None
    """A TOML file of model prices in the form of `app/adapters/prices.toml`, which it extends or overrides."""
    cohere_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("COHERE_API_KEY"))
    """For the reranker behind Cohere's API, version 2."""
    cohere_base_url: str | None = Field(None, validation_alias=AliasChoices("COHERE_BASE_URL"))
    """A server that speaks Cohere's rerank API or something like it; unset: Cohere."""
    rerank_model: str = "rerank-v3.5"
    """The reranker of modes with `rerank.method = "cohere"`."""
    cross_encoder: Path | None = None
    """A folder with `model.onnx` and `tokenizer.json`: the reranker of modes with `rerank.method = "cross_encoder"`."""
    hosts: Annotated[frozenset[str], NoDecode] = frozenset()
    """Names by which clients may address the service, such as `ask.example.com` or `*.example.com`, separated by
    commas; `localhost` and IP addresses always may, `*` stands for every name."""
    origins: Annotated[frozenset[str], NoDecode] = frozenset()
    """Where pages of other sites that may ask come from, such as `https://chat.example.com` or `http://localhost:*`,
    separated by commas. They have no part in who is signed in here: where there are keys, they need one."""
    server: str | None = None
    """The address of the server that commands ask in place of what is on this machine."""
    api_key: SecretStr | None = None
    """The key with which commands talk to a running server; unset: the one that the server keeps in `home`."""
    keys_from: str = ""
    """A line at the page's sign-in that says who gives keys, such as `Ask Ann for a key: ann@example.com`."""
    oidc_issuer: str | None = None
    """The OpenID Connect provider whose tokens callers may send in place of a key: its address, as tokens name it."""
    oidc_audience: str | None = None
    """The name of this service in those tokens (`aud`)."""
    oidc_client_id: str | None = None
    """The name under which the provider knows this service as a client: people sign in there from the page. Tokens for
    it are taken as well."""
    oidc_client_secret: SecretStr | None = None
    """The client's secret; unset: a public client."""
    oidc_scopes: str = "openid"
    """What the page asks the provider for; some put workspaces and groups into a token only if asked for more."""
    oidc_workspaces_claim: str = "workspaces"
    """The claim that names the workspaces that a token opens; `*` among them: all."""
    oidc_groups_claim: str = "groups"
    """The claim that names the caller's groups."""
    oidc_rights_claim: str = "scope"
    """The claim that holds the caller's rights, such as `ask ingest`; other words in it mean nothing here."""
    max_runs: int = Field(256, ge=1)
    """Number of runs that a process takes on at once; further questions are refused with 503."""
    max_runs_per_caller: int | None = Field(None, ge=1)
    """Number of questions that a caller may have answered at once, by all processes; further ones are refused with 429.
    This and the next three hold for callers without limits of their own; unset: no limit."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Number of requests that a caller may send in a minute."""
    tokens_per_day: int | None = Field(None, ge=0)
    """Tokens of language models that a caller's questions may use in a day."""
    dollars_per_day: float | None = Field(None, ge=0)
    """Dollars that they may cost."""
    profiles: Path | None = None
    """A TOML file of modes, each of which may say what it `extends`; or the name of a shipped pipeline."""
    sources: Path | None = None
    """A TOML file of places that LangChain has loaders for, which `askgraph sync NAME` reads; unset: none."""
    mcp_servers: Path | None = None
    """A TOML file of MCP servers whose functions the research agent of a mode may call, as far as its
    `functions.names` does; unset: none."""
    log_format: LogFormat = "text"
    """`text` for people, or `json` for a log collector: one object a line, with ids of run, thread and workspace."""
    answer_ttl_hours: float = Field(24, gt=0)
    """Hours that the cache keeps an answer."""
    tapes: bool = True
    """If true, runs are taped, so that they can be replayed without calls."""
    untaped_workspaces: Annotated[frozenset[str], NoDecode] = frozenset()
    """Names of workspaces whose runs are not taped, separated by commas."""
    retention: Annotated[Policy, NoDecode] = Policy()
    """How long threads are kept after their last run, such as `90d`; workspaces may have spans of their own:
    `90d,acme=7d,legal=keep`."""
    keep_steps: Annotated[timedelta | None, NoDecode] = timedelta(days=30)
    """How long the steps and the tape of a run are kept, such as `30d`; a conversation keeps its last state. `keep`: as
    long as the conversation."""
    audit_days: int = Field(365, ge=1)
    """Days for which the log of who changed what is kept."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the choice of `askgraph models use` too. It holds as a whole, with its address and key, unless this
        process is told a model otherwise."""
        given = {**env_settings(), **init_settings()}
        if given.keys() & _MODELS:
            return init_settings, env_settings
        chosen = ChosenModels.read(Path(given.get("home") or _default_home()))
        return init_settings, InitSettingsSource(cls, chosen.as_settings() if chosen else {}), env_settings

    @property
    def max_upload_bytes(self) -> int:
        """Bytes of one upload, and of all that a process receives at once: ten of the largest documents."""
        return 10 * self.max_document_mb * 1_000_000

    @property
    def storage_limit(self) -> StorageLimit:
        """Limit of what each workspace may hold."""
        return StorageLimit(self.max_documents, self.max_stored_mb)

    @property
    def limits(self) -> Limits:
        """Limits of callers who have none of their own."""
        return Limits(self.requests_per_minute, self.max_runs_per_caller, self.tokens_per_day, self.dollars_per_day)

    @property
    def providers(self) -> dict[str, Access]:
        """API key and address of each provider of language models: `openai`, and those in `PACKAGES`."""
        return {
            provider: Access(reveal(getattr(self, f"{provider}_api_key")), getattr(self, f"{provider}_base_url"))
            for provider in PACKAGES
        } | {"openai": self.openai}

    @property
    def openai(self) -> Access:
        """That of models behind OpenAI's API."""
        headers = {name: value.get_secret_value() for name, value in self.model_headers.items()}
        return Access(reveal(self.openai_api_key), self.openai_base_url, headers, self.openai_api_key_file)

    @field_validator("*", mode="before")
    @classmethod
    def _strip(cls, value: Any) -> Any:
        """A key is often copied with the end of its line, which no header may hold; files of variables that a container
        gets keep their quotes."""
        return re.sub(r"^(['\"])(.*)\1$", r"\2", value.strip()) if isinstance(value, str) else value

    @field_validator("openai_api_key", "anthropic_api_key", "embeddings_api_key", "cohere_api_key")
    @classmethod
    def _check_key(cls, value: SecretStr | None) -> SecretStr | None:
        strange = re.search(r"[^\x20-\x7e]", reveal(value) or "")
        if strange:
            raise PydanticCustomError(
                "key",
                "no key has a character like {code}, the one at place {place}: copy it anew",
                {"code": f"U+{ord(strange[0]):04X}", "place": strange.start() + 1},
            )
        return value and SecretStr(reveal(value).removeprefix("Bearer "))

    @field_validator("database_url", "pgvectorstore_url")
    @classmethod
    def _read_address(cls, value: SecretStr | None) -> SecretStr | None:
        if not value:
            return value
        from app.adapters.postgres.address import read_address  # which takes its time

        try:
            return SecretStr(read_address(value.get_secret_value()))
        except ValueError as error:
            raise PydanticCustomError("address", "{why}", {"why": str(error)}) from None

    @field_validator("model_headers", mode="before")
    @classmethod
    def _read_headers(cls, value: Any) -> Any:
        """No message shows a value, which may be a secret."""
        try:
            read = json.loads(value or "{}") if isinstance(value, str) else value
        except ValueError:
            read = None
        if not isinstance(read, dict) or not all(isinstance(each, str | SecretStr) for each in read.values()):
            raise PydanticCustomError("headers", 'it is written as JSON, with texts: {{"x-name": "value"}}')
        wrong = [name for name, each in read.items() if not re.fullmatch(r"[!-9;-~]+", name) or _is_strange(each)]
        if wrong:
            raise PydanticCustomError(
                "headers", "no header may have a name or value like that of {name}", {"name": wrong[0]}
            )
        return read

    @field_validator("retention", mode="before")
    @classmethod
    def _read_policy(cls, value: Any) -> Any:
        return Policy.parse(value) if isinstance(value, str) else value

    @field_validator("keep_steps", mode="before")
    @classmethod
    def _read_age(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.strip() == KEEP:
            return None
        if (age := parse_age(value)) is None:
            raise PydanticCustomError("age", "{given} is no span in h, d or w, nor keep", {"given": repr(value)})
        return age

    @field_validator("embeddings")
    @classmethod
    def _check_embeddings(cls, value: str) -> str:
        if value != "local" and value.partition(":")[0] not in EMBEDDERS:
            raise PydanticCustomError(
                "embeddings",
                "{given} names no model: it is local, or begins with one of {known}",
                {"given": repr(value), "known": ", ".join(EMBEDDERS)},
            )
        return value

    @field_validator("originals")
    @classmethod
    def _check_originals(cls, value: str) -> str:
        if not re.fullmatch(r"database|s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[^\s?#]+)?", value):
            raise PydanticCustomError(
                "originals", "{given} is none of database, s3://BUCKET and s3://BUCKET/PREFIX", {"given": repr(value)}
            )
        return value

    @model_validator(mode="after")
    def _choose_models(self) -> Self:
        if self.model is not None:
            for name, value in (("model_large", self.model), ("model_small", "none"), ("model_judge", "none")):
                if name not in self.model_fields_set:
                    setattr(self, name, value)
        return self

    @model_validator(mode="after")
    def _check_oidc(self) -> Self:
        if self.oidc_issuer is not None and not (self.oidc_audience or self.oidc_client_id):
            raise PydanticCustomError(
                "oidc",
                "oidc_issuer needs oidc_audience or oidc_client_id: without, tokens for any other service would do",
            )
        if self.oidc_client_id is not None and self.oidc_issuer is None:
            raise PydanticCustomError("oidc", "oidc_client_id needs oidc_issuer")
        if self.oidc_issuer is not None and not is_safe_address(self.oidc_issuer):
            raise PydanticCustomError("oidc", "oidc_issuer has to begin with https://")
        return self

    @field_validator("untaped_workspaces", "model_fallbacks", "models_that_see", "hosts", "origins", mode="before")
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


def find_mistyped(environment: Iterable[str]) -> list[str]:
    """Return a sentence for each of these variables that is no setting and nearly has the name of one. Others are left
    alone: Kubernetes sets `ASKGRAPH_PORT` and the like for a service of this name."""
    known = {f"ASKGRAPH_{name.upper()}" for name in Settings.model_fields}
    unknown = [name for name in environment if name.startswith("ASKGRAPH_") and name not in known]
    return [
        f"{name} is no setting, and changes nothing. Did you mean {near[0]}?"
        for name in unknown
        if (near := get_close_matches(name, known, n=1, cutoff=0.85))
    ]


def reveal(secret: SecretStr | None) -> str:
    """Return the secret in plain text; empty where it is not set."""
    return secret.get_secret_value() if secret else ""
