"""Options of a request (`RequestOptions`) as inspect-ai takes them, and which provider heeds which of them.

inspect-ai drops options that a provider does not know, most of them in silence. A run whose `run.json` states an option
that was never sent would mislead, so these are refused here.
"""

from collections.abc import Mapping
from typing import Any, Final

from carina.models.conversation import RequestOptions
from carina.models.registry import name_options
from carina.store.errors import CarinaError

_OPENAI_LAYOUT: Final = frozenset(
    {
        "cloudflare", "deepseek", "fireworks", "hf-inference-providers", "litellm-proxy", "llama-cpp-python", "meta",
        "moonshot", "ollama", "openai-api", "openrouter", "perplexity", "sambanova", "sglang", "together", "vllm",
    }
)  # fmt: skip
"""Providers of inspect-ai whose requests have the layout of OpenAI's chat completions."""
_TOP_K_IN_BODY: Final = frozenset(
    {"fireworks", "llama-cpp-python", "openai-api", "openrouter", "sglang", "together", "vllm"}
)
"""Those of them whose servers take `top_k`, which inspect-ai does not send them by itself."""
_HEEDED_BY: Final[Mapping[str, frozenset[str]]] = {
    "top_p": _OPENAI_LAYOUT
    | {"anthropic", "azureai", "bedrock", "google", "grok", "groq", "mistral", "openai", "sagemaker"},
    "top_k": _TOP_K_IN_BODY | {"anthropic", "bedrock", "google", "sagemaker"},
    "reasoning_effort": _OPENAI_LAYOUT
    | {"anthropic", "bedrock", "google", "grok", "groq", "mistral", "openai", "sagemaker"},
    "reasoning_tokens": frozenset({"anthropic", "bedrock", "google", "openrouter"}),
    "extra_body": _OPENAI_LAYOUT | {"openai", "sagemaker"},
    # DeepSeek gets JSON without a schema from inspect-ai.
    "structured": (_OPENAI_LAYOUT - {"deepseek"})
    | {"anthropic", "google", "grok", "groq", "mistral", "openai", "sagemaker"},
}
REQUEST_OPTIONS: Final = tuple(_HEEDED_BY)
"""Options that any provider heeds."""


def request_settings(model: str, request: RequestOptions) -> dict[str, Any]:
    """The options of a request as settings of inspect-ai's `GenerateConfig`, without the schema of an answer.

    Args:
        model: Name of the model in inspect-ai.
        request: The options.

    Raises:
        CarinaError: The provider does not take an option that is given; the message names those that do.

    Example:
        >>> request_settings("vllm/medgemma", RequestOptions(top_p=0.9, top_k=40))
        {'top_p': 0.9, 'extra_body': {'top_k': 40}}
    """
    provider = model.partition("/")[0]
    given = request.to_record()
    for name in given:
        if provider not in _HEEDED_BY[name]:
            raise CarinaError(
                f"model {model!r}: {name_options([name])} is not supported for the provider {provider!r}; providers "
                f"that take it: {', '.join(sorted(_HEEDED_BY[name]))}"
            )
    given.pop("structured", None)
    if provider in _TOP_K_IN_BODY and "top_k" in given:
        given["extra_body"] = {"top_k": given.pop("top_k")} | given.get("extra_body", {})
    return given


def answer_config(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Arguments of inspect-ai's `Model.generate` that ask for JSON in a schema; none without a schema."""
    if schema is None:
        return {}
    from inspect_ai.model import GenerateConfig, ResponseSchema  # noqa: PLC0415
    from inspect_ai.util import JSONSchema  # noqa: PLC0415

    wanted = ResponseSchema(
        name="answer",
        description="The answer to the question.",
        json_schema=JSONSchema.model_validate(schema),
        strict=True,
    )
    return {"config": GenerateConfig(response_schema=wanted)}


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object that has these fields and no others.

    Example:
        >>> object_schema({"answer": {"type": "string"}})["required"]
        ['answer']
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
