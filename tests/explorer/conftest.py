"""One browser for all tests of the page."""

from __future__ import annotations

import pytest
from tests.explorer.browser import Browser, missing


@pytest.fixture(scope="session")
def window(tmp_path_factory):
    """The window itself: starting one takes seconds."""
    if missing():
        pytest.skip(f"no browser to test the page in: {missing()}")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture
def browser(window):
    """A window whose console stays free of errors."""
    window.errors()
    yield window
    assert window.errors() == []
