"""A bundle with records of all paths."""

import pytest
from tests.sources.chexpercept.published import write_bundle


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(tmp_path / "bundle")
