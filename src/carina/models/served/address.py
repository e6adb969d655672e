"""Where a model is served, and which environment variable holds the key for it."""

import os
import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from carina.store.errors import CarinaError

LOCAL_PROVIDERS: Final = ("ollama", "vllm", "sglang", "llama-cpp-python", "mockllm")
"""Providers of inspect-ai that run on this machine unless an address says otherwise."""
_UNWANTED: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\]")
"""Characters that parsers of addresses read in different ways."""
_CREDENTIALS: Final = re.compile(r"//[^/?#]*@")


def served_address(model: str, base_url: str | None) -> str | None:
    """The address of a served model; None where only its provider's package knows it.

    Raises:
        CarinaError: It is no address of an HTTP server; the message names the option or the environment variable.
    """
    provider, _, rest = model.partition("/")
    service = rest.partition("/")[0] if provider == "openai-api" else provider
    variables = (f"{service.upper().replace('-', '_')}_BASE_URL", "INSPECT_EVAL_MODEL_BASE_URL")
    for place, address in (("--base-url", base_url), *((name, os.environ.get(name)) for name in variables)):
        if address:
            check_address(address, place)
            return address
    return None


def check_address(address: str, place: str) -> None:
    """Refuse what is no address of an HTTP server.

    Args:
        address: The address, as in "http://localhost:8000/v1".
        place: Option or environment variable that gives it, for the message.

    Raises:
        CarinaError: It has another scheme or none, no host, or a part that is malformed.
    """
    shown = _CREDENTIALS.sub("//***@", address).partition("?")[0]
    expected = "expected the address of a server, such as http://localhost:8000/v1"
    if _UNWANTED.search(address):
        raise CarinaError(f"{place} {shown!r}: blanks, backslashes or control characters; {expected}")
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise CarinaError(f"{place} {shown!r}: {error}; {expected}") from None
    if parts.scheme not in ("http", "https") or "//" not in address:
        raise CarinaError(f"{place} {shown!r}: does not start with http:// or https://; {expected}")
    if not host:
        raise CarinaError(f"{place} {shown!r}: names no host; {expected}")


def is_on_this_machine(model: str, base_url: str | None) -> bool:
    """Whether requests to a served model stay on this machine."""
    address = served_address(model, base_url)
    return model.partition("/")[0] in LOCAL_PROVIDERS if address is None else is_local(address)


def is_local(address: str) -> bool:
    """Whether an address is on this machine."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return host is not None and not _UNWANTED.search(address) and is_local_host(host)


def is_local_host(host: str) -> bool:
    """Whether a host is this machine: a loopback address, or `localhost`. Other names may lead anywhere."""
    try:
        found = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(found, "ipv4_mapped", None) or found
    return mapped.is_loopback or mapped.is_unspecified


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
