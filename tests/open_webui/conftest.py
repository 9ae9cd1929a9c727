from tests.page.conftest import browser, site

__all__ = ["browser", "site"]
