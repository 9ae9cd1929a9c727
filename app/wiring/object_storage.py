"""The storage of original files outside of the database."""

from app.settings import Settings
from domain.ports.originals import ObjectStorage


def open_object_storage(settings: Settings) -> ObjectStorage | None:
    """Open it where the settings name one. It is not asked for anything yet. Raises `ConfigurationError`."""
    if settings.originals == "database":
        return None
    # The SDK is an optional package.
    from app.adapters.s3 import S3Storage

    return S3Storage(settings.originals)
