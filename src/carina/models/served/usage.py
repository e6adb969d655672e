"""Token counts of a service: those that make no sense are not reported and never summed."""

from typing import Any, Final

MOST_TOKENS: Final = 100_000_000
"""More tokens than any model takes or gives in one exchange; the largest contexts hold ten million."""
_REFUSED: Final = -1
"""In the place of a count that inspect-ai could not take; `read_usage` refuses it."""
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS: Final = ("prompt_tokens_details", "completion_tokens_details")


def is_sensible(count: object) -> bool:
    """Whether a number of tokens can be true.

    Example:
        >>> [is_sensible(count) for count in (7, 0, -1, 2.5, True, "7", 10**12)]
        [True, True, False, False, False, False, False]
    """
    return isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_TOKENS


def read_usage(usage: Any) -> tuple[int, int] | None:  # noqa: ANN401
    """Tokens that were sent and written, as inspect-ai gives them; None where the counts make no sense."""
    sent, written, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if not (is_sensible(sent) and is_sensible(written) and is_sensible(total)):
        return None
    # Services that do not count the total send 0; those that count more than these two send a larger one.
    return None if 0 < total < sent + written else (sent, written)


def mark_senseless_counts(api: Any) -> None:  # noqa: ANN401
    """Let a client of the OpenAI layout pass on answers whose token counts inspect-ai would stumble over.

    The counts are replaced by one that `read_usage` refuses: an answer that was paid for is kept. May be called again
    for the same model.
    """
    chat = getattr(getattr(api, "client", None), "chat", None)
    completions = getattr(chat, "completions", None)
    create = getattr(completions, "create", None)
    if create is None or getattr(create, "marks_senseless_counts", False):
        return

    async def create_and_mark(**request: Any) -> Any:  # noqa: ANN401
        completion = await create(**request)
        if getattr(completion, "usage", None) is not None:
            _mark(completion)
        return completion

    create_and_mark.marks_senseless_counts = True  # type: ignore[attr-defined]
    completions.create = create_and_mark  # type: ignore[union-attr]


def _mark(completion: Any) -> None:  # noqa: ANN401
    from openai.types import CompletionUsage  # noqa: PLC0415 - needs an extra

    usage = completion.usage
    if not isinstance(usage, CompletionUsage):
        usage = CompletionUsage.model_construct()
    counts = {name: getattr(usage, name, None) for name in _COUNTS}
    details = {name: getattr(usage, name, None) for name in _DETAILS}
    is_whole = all(is_sensible(count) for count in counts.values()) and all(
        one is None
        or (hasattr(one, "model_fields_set") and all(value is None or is_sensible(value) for _, value in one))
        for one in details.values()
    )
    if not is_whole:
        completion.usage = CompletionUsage(
            prompt_tokens=_REFUSED, completion_tokens=_REFUSED, total_tokens=_REFUSED
        )
