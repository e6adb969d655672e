"""Served models need the extra; a key is there, and known, so that it can be looked for where it must not be."""

import pytest
from tests.models import loopback

pytest.importorskip("inspect_ai", reason="the extra served is not installed")
pytest.importorskip("openai", reason="the extra served is not installed")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", loopback.KEY)
