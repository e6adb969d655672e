"""A sound set of conversations for every test to break."""

import pytest
from tests.audits.trek.sound import benchmark


@pytest.fixture(scope="session")
def sound():
    return tuple(benchmark(150))
