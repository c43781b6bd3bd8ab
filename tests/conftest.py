"""Settings for all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test may compile kernels, so a deadline an example makes no sense.
# Continuous integration tries the same examples every time: what passed once passes again.
settings.register_profile("latentree", deadline=None, derandomize="CI" in os.environ)
settings.register_profile("fuzz", deadline=None, max_examples=2_000, print_blob=True)  # make fuzz
settings.load_profile("latentree")


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """Folder of the data of the paper's experiments."""
    folder = os.environ.get("LATENTREE_DATA", "")
    if not folder:
        pytest.skip("LATENTREE_DATA is not set: it names the folder of the paper's data")
    return Path(folder)
