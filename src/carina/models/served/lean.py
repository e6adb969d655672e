"""What inspect-ai and a provider's client do at every call that nobody here looks at, left out.

In a conversation with pictures that is more work than sending them. Nothing of this changes what is sent.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

_NOT_SENT: Final = frozenset({"extra_headers", "extra_body"})
_OTHERWISE: Final = frozenset({"stream", "extra_query", "timeout"})
"""Arguments that the client's own way alone knows."""


def unlogged(model: Any) -> None:  # noqa: ANN401
    """Let a model of inspect-ai record no calls: it would copy every message for a log that nobody keeps."""
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


def nowhere() -> None:
    """Let this task keep no events: those of a call are updated once more when it has ended."""
    from inspect_ai.log._transcript import init_transcript  # noqa: PLC0415

    init_transcript(_nowhere())


@cache
def _nowhere() -> Any:  # noqa: ANN401
    from inspect_ai.log._transcript import Transcript  # noqa: PLC0415

    class Nowhere(Transcript):  # type: ignore[misc, unused-ignore]
        def _event(self, event: Any) -> None:  # noqa: ANN401
            pass

        def _event_updated(self, event: Any) -> None:  # noqa: ANN401
            pass

    return Nowhere()


def as_it_is(api: Any) -> None:  # noqa: ANN401
    """Let an openai client send what inspect-ai has made, without holding each part against its types.

    A request that is anything but plain JSON goes the client's own way, and so do all requests of other clients: some
    of them read the request to find where it goes.
    """
    client = getattr(api, "client", None)
    kind = type(client)
    if f"{kind.__module__}.{kind.__qualname__}" != "openai.AsyncOpenAI":
        return
    from openai.types.chat import ChatCompletion  # noqa: PLC0415

    completions: Any = client.chat.completions  # type: ignore[union-attr]
    create = completions.create

    async def post(**request: Any) -> Any:  # noqa: ANN401
        content = _plain(request)
        if content is None:
            return await create(**request)
        options = {"headers": request.get("extra_headers") or {}}
        return await client.post(  # type: ignore[union-attr]
            "/chat/completions", content=content, cast_to=ChatCompletion, options=options
        )

    completions.create = post


def _plain(request: Mapping[str, Any]) -> bytes | None:
    """The request as JSON; None where it holds more than that."""
    from openai import NotGiven, Omit  # noqa: PLC0415

    given = {name: value for name, value in request.items() if not isinstance(value, (NotGiven, Omit))}
    if not _OTHERWISE.isdisjoint(given):
        return None
    body = {name: value for name, value in given.items() if name not in _NOT_SENT}
    try:
        return msgspec.json.encode({**body, **(given.get("extra_body") or {})})
    except (TypeError, ValueError):
        return None
