"""Where a model is served: on this machine or elsewhere."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_local(address: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(address).hostname or ""
    try:
        found = ip_address(host)
    except ValueError:
        return host == "localhost"
    return found.is_loopback or found.is_unspecified


def key_variable(name: str) -> str | None:
    """The environment variable with the key of a service in OpenAI's layout: `openai-api/local/llama`."""
    provider, _, rest = name.partition("/")
    service = rest.partition("/")[0]
    return f"{service.upper().replace('-', '_')}_API_KEY" if provider == "openai-api" and service else None
