"""Skips work of inspect-ai and of the OpenAI client whose results Carina does not use.

In a conversation with images this work takes longer than sending them. What is sent stays the same.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

_NOT_SENT: Final = frozenset({"extra_headers", "extra_body"})
_CLIENT_ONLY: Final = frozenset({"stream", "extra_query", "timeout"})
"""Arguments that only the client's own method understands."""


def disable_recording(model: Any) -> None:  # noqa: ANN401
    """Stop a model of inspect-ai from recording calls: it would copy every message for a log that is not kept."""
    from inspect_ai.event import ModelEvent  # noqa: PLC0415
    from inspect_ai.model import GenerateConfig, ModelOutput  # noqa: PLC0415

    blank = ModelEvent(
        model=str(model),
        input=[],
        tools=[],
        tool_choice="auto",
        config=GenerateConfig(),
        output=ModelOutput(),
    )

    def record(**_: Any) -> Any:  # noqa: ANN401
        return lambda *_: None, blank.model_copy()

    model._record_model_interaction = record


def discard_events() -> None:
    """Discard the events of this task, which inspect-ai updates once more when a call has ended."""
    from inspect_ai.log._transcript import init_transcript  # noqa: PLC0415

    init_transcript(_discarding_transcript())


@cache
def _discarding_transcript() -> Any:  # noqa: ANN401
    from inspect_ai.log._transcript import Transcript  # noqa: PLC0415

    class DiscardingTranscript(Transcript):  # type: ignore[misc, unused-ignore]
        def _event(self, event: Any) -> None:  # noqa: ANN401
            pass

        def _event_updated(self, event: Any) -> None:  # noqa: ANN401
            pass

    return DiscardingTranscript()


def skip_request_checks(api: Any) -> None:  # noqa: ANN401
    """Let an OpenAI client send inspect-ai's requests without checking each part against its types.

    A request that is not plain JSON is sent by the client's own method, and so are all requests of other clients: some
    of them read the request to find its address.
    """
    client = getattr(api, "client", None)
    kind = type(client)
    if f"{kind.__module__}.{kind.__qualname__}" != "openai.AsyncOpenAI":
        return
    from openai.types.chat import ChatCompletion  # noqa: PLC0415

    completions: Any = client.chat.completions  # type: ignore[union-attr]
    create = completions.create

    async def post(**request: Any) -> Any:  # noqa: ANN401
        content = _to_json(request)
        if content is None:
            return await create(**request)
        options = {"headers": request.get("extra_headers") or {}}
        return await client.post(  # type: ignore[union-attr]
            "/chat/completions", content=content, cast_to=ChatCompletion, options=options
        )

    completions.create = post


def _to_json(request: Mapping[str, Any]) -> bytes | None:
    """The request as JSON; None where it holds anything else."""
    from openai import NotGiven, Omit  # noqa: PLC0415

    given = {name: value for name, value in request.items() if not isinstance(value, (NotGiven, Omit))}
    if not _CLIENT_ONLY.isdisjoint(given):
        return None
    body = {name: value for name, value in given.items() if name not in _NOT_SENT}
    try:
        return msgspec.json.encode({**body, **(given.get("extra_body") or {})})
    except (TypeError, ValueError):
        return None
