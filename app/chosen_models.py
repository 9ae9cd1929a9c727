"""The language model that `askgraph models use` has chosen for a home folder, and its key."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from app.support.private_files import write_private
from app.support.toml_files import list_problems
from domain.errors import ConfigurationError
from domain.model_names import ModelName

FILE = "models.json"


class ChosenModels(BaseModel):
    """Values of settings, by their names. Only the owner may read the file, since it may hold a key."""

    model_config = ConfigDict(extra="forbid")

    model_large: ModelName
    model_small: ModelName
    model_judge: ModelName
    openai_base_url: str | None = None
    openai_api_key: str | None = None
    anthropic_api_key: str | None = None
    sends_headers: bool | None = None
    """True where `ASKGRAPH_MODEL_HEADERS` go to the address: whoever chose it may read them."""

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """Return the choice for this home; None if there is none. Raises `ConfigurationError`."""
        try:
            return cls.model_validate_json((home / FILE).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValidationError as error:
            raise ConfigurationError(f"{home / FILE} cannot be read. {list_problems(error)} Delete it.") from error

    def keep(self, home: Path) -> None:
        """Write the file."""
        write_private(home / FILE, self.model_dump_json(exclude_none=True, indent=1) + "\n")

    def as_settings(self) -> dict[str, Any]:
        """Return what the settings take over. An address comes with its own key or none: another's is not sent
        there, nor are headers."""
        given = self.model_dump(exclude_none=True, exclude={"sends_headers"})
        keys = {"openai_api_key": self.openai_api_key or "", "openai_api_key_file": None}
        headers: dict[str, Any] = {} if self.sends_headers or not self.openai_base_url else {"model_headers": {}}
        return given | headers | (keys if self.openai_base_url or self.openai_api_key else {})
