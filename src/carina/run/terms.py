"""Whether a benchmark may be sent to where a model is served.

Terms of a source cover its images and what was drawn from its reports alike: without pictures the questions remain.
"""

import os
from typing import Final

from carina.cases import Benchmark
from carina.errors import CarinaError
from carina.models.served.address import is_local

_OPEN: Final = ("cc", "public domain", "mit", "apache", "bsd", "synthetic", "none needed", "open data")
"""How licences begin under which data may be handed on."""
_OWN_MACHINE: Final = ("ollama", "vllm", "sglang", "llama-cpp-python", "mockllm")
"""Providers of inspect-ai that are on this machine unless an address says otherwise."""


def refuse_restricted(bench: Benchmark, model: str, *, base_url: str | None, accept_terms: bool) -> None:
    """Data whose terms forbid handing it on leaves this machine only if the user says that it may."""
    if accept_terms or _is_here(model, base_url):
        return
    for source in bench.manifest.sources:
        if not source.licence.strip().lower().startswith(_OPEN):
            raise CarinaError(
                f"the cases of {source.name} are under the terms {source.licence!r}, and {model} is served by somebody "
                "else: give --accept-terms if the terms allow to send them there"
            )


def _is_here(model: str, base_url: str | None) -> bool:
    address = served_at(model, base_url)
    return model.partition("/")[0] in _OWN_MACHINE if address is None else is_local(address)


def served_at(model: str, base_url: str | None) -> str | None:
    """Where a served model is asked; None where its provider's package knows that alone."""
    provider, _, rest = model.partition("/")
    service = rest.partition("/")[0] if provider == "openai-api" else provider
    return (
        base_url
        or os.environ.get(f"{service.upper().replace('-', '_')}_BASE_URL")
        or os.environ.get("INSPECT_EVAL_MODEL_BASE_URL")
    )
