"""A sound benchmark for every test to break."""

import pytest
from tests.audits.sound import benchmark


@pytest.fixture(scope="session")
def sound():
    return tuple(benchmark(48))
