"""Where a model is served, and which environment variable holds the key for it."""

import os
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

LOCAL_PROVIDERS: Final = ("ollama", "vllm", "sglang", "llama-cpp-python", "mockllm")
"""Providers of inspect-ai that run on this machine unless an address says otherwise."""


def served_address(model: str, base_url: str | None) -> str | None:
    """The address of a served model; None where only its provider's package knows it."""
    provider, _, rest = model.partition("/")
    service = rest.partition("/")[0] if provider == "openai-api" else provider
    return (
        base_url
        or os.environ.get(f"{service.upper().replace('-', '_')}_BASE_URL")
        or os.environ.get("INSPECT_EVAL_MODEL_BASE_URL")
    )


def is_on_this_machine(model: str, base_url: str | None) -> bool:
    """Whether requests to a served model stay on this machine."""
    address = served_address(model, base_url)
    return model.partition("/")[0] in LOCAL_PROVIDERS if address is None else is_local(address)


def is_local(address: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(address).hostname or ""
    try:
        found = ip_address(host)
    except ValueError:
        return host == "localhost"
    return found.is_loopback or found.is_unspecified


def without_secrets(address: str | None) -> str | None:
    """An address without credentials, query and fragment, where keys may stand."""
    if not address:
        return None
    scheme, separator, rest = address.partition("://")
    try:
        parts = urlsplit(f"//{rest if separator else address}")
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    return f"{scheme}{separator}{host}{parts.path}" if separator else f"{host}{parts.path}"


def key_variable(name: str) -> str | None:
    """The environment variable with the key of a service in OpenAI's layout: `openai-api/local/llama`."""
    provider, _, rest = name.partition("/")
    service = rest.partition("/")[0]
    return f"{service.upper().replace('-', '_')}_API_KEY" if provider == "openai-api" and service else None
