"""How a model is run: the options of `carina run`, history policies by their names, and the selection of cases."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from carina.cases import Benchmark, Case
from carina.models import RequestOptions, Sampling
from carina.models.conversation import ReasoningEffort
from carina.runs.records import History, Policy, Profile, Prompts, Scope
from carina.store.documents import require_finite
from carina.store.errors import CarinaError
from carina.store.results import Location, as_path
from carina.store.seeding import shares
from carina.store.workers import Engine
from carina.studies.vocabulary import Split

HistoryName = Literal["own", "gold", "hint", "none", "implicit", "explicit"]
"""History policies, with CheXpercept's names for gold and hint."""
_RESERVED_FIELDS: Final = frozenset(
    {
        "max_completion_tokens", "max_tokens", "messages", "metadata", "model", "n", "reasoning_effort",
        "response_format", "seed", "stream", "temperature", "tools", "top_k", "top_p",
    }
)  # fmt: skip
"""Fields of a request that Carina sets, or that would change what comes back; inspect-ai drops `metadata`."""
_CHEXPERCEPT: Final = {"none": "own", "implicit": "gold", "explicit": "hint"}
"""CheXpercept's settings, and the history policy that each is."""
LONGEST_ANSWER: Final[dict[Profile, int]] = {"carina": 2048, "chexpercept": 8192}
"""Longest answer by profile, in tokens."""


@dataclass(frozen=True, kw_only=True)
class ExampleRequest:
    """Where examples come from, and how many are shown."""

    benchmark: Path
    images: Path | None = None
    """Directory of their images; None for the one that their benchmark names."""
    split: Split | None = None
    per_protocol: int = 2
    max_images: int = 20
    """Images of all examples of a protocol."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a model is run; the arguments of `carina.run` as one record."""

    policy: Policy = field(default_factory=Policy)
    blind: bool = False
    max_side: int | None = None
    limit: int | None = None
    sample_per_stratum: int | None = None
    split: Split | None = None
    seed: int = 0
    prompts: Prompts = field(default_factory=Prompts)
    examples: ExampleRequest | None = None
    """The examples themselves are in `prompts` when the benchmark has been opened."""
    sampling: Sampling = field(default_factory=Sampling)
    request: RequestOptions = field(default_factory=RequestOptions)
    first_request: bool = True
    connections: int = 16
    processes: int = 1
    engine: Engine = "local"
    address: str | None = None
    base_url: str | None = None
    retries: int = 5
    timeout: int = 300
    accept_terms: bool = False
    trust_remote_code: bool = False
    device: str | None = None
    batch_size: int | None = None
    images: Path | None = None
    verify_images: bool = True


def make_options(
    *,
    history: HistoryName,
    scope: Scope | None,
    on_wrong: Literal["continue", "stop"],
    profile: Profile,
    blind: bool,
    max_side: int | None,
    limit: int | None,
    sample_per_stratum: int | None,
    seed: int,
    temperature: float | None,
    max_tokens: int | None,
    images: Location | None,
    split: Split | None = None,
) -> RunOptions:
    """The options that decide what is asked."""
    return RunOptions(
        policy=make_policy(history, scope, on_wrong, profile),
        blind=blind,
        max_side=max_side,
        limit=limit,
        sample_per_stratum=sample_per_stratum,
        seed=seed,
        split=split,
        sampling=Sampling(
            temperature=temperature if temperature is not None and temperature >= 0 else None,
            max_tokens=max_tokens or LONGEST_ANSWER[profile],
        ),
        images=None if images is None else as_path(images),
    )


def make_request_options(
    *,
    top_p: float | None,
    top_k: int | None,
    reasoning_effort: ReasoningEffort | None,
    reasoning_tokens: int | None,
    extra_body: Mapping[str, Any] | None,
    structured: bool,
    max_tokens: int,
) -> RequestOptions:
    """The options of requests, checked.

    Raises:
        CarinaError: A number is out of its range, or `extra_body` holds a field that it may not set.
    """
    if top_p is not None and not 0 < top_p <= 1:
        raise CarinaError(f"top_p {top_p}: expected more than 0, and 1 at most")
    if reasoning_tokens is not None and reasoning_tokens >= max_tokens:
        raise CarinaError(
            f"reasoning_tokens {reasoning_tokens}: expected fewer than max_tokens ({max_tokens}), which include them"
        )
    return RequestOptions(
        top_p=top_p,
        top_k=top_k,
        reasoning_effort=reasoning_effort,
        reasoning_tokens=reasoning_tokens,
        extra_body=_checked_body(extra_body) if extra_body else None,
        structured=structured,
    )


def _checked_body(fields: Mapping[str, Any]) -> str:
    reserved = sorted(_RESERVED_FIELDS & fields.keys())
    if reserved:
        raise CarinaError(
            f"extra_body: {', '.join(reserved)} cannot be set here: it has an option of its own, or belongs to the "
            "conversation"
        )
    require_finite(fields, "extra_body")
    try:
        return write_extra_body(fields)
    except (TypeError, ValueError) as error:
        raise CarinaError(f"extra_body: expected what JSON can hold ({error})") from None


def write_extra_body(fields: Mapping[str, Any]) -> str:
    """Further fields of a request as `RequestOptions` holds them.

    Example:
        >>> write_extra_body({"top_a": 0.5, "min_p": 0.1})
        '{"min_p":0.1,"top_a":0.5}'
    """
    return msgspec.json.encode(dict(fields), order="deterministic").decode()


def make_policy(
    history: HistoryName,
    scope: Scope | None = None,
    on_wrong: Literal["continue", "stop"] = "continue",
    profile: Profile = "carina",
) -> Policy:
    """The policy of a history by its name.

    CheXpercept's settings correct stage by stage. Its setting "none" corrects nothing, which is the history "own";
    with the profile "carina", "none" shows no earlier turn.

    Example:
        >>> make_policy("implicit")
        Policy(history='gold', scope='stage', on_wrong='continue', profile='carina')
    """
    name: str = history
    if profile == "chexpercept" or history in ("implicit", "explicit"):
        scope = scope or "stage"
        name = _CHEXPERCEPT.get(history, history)
    return Policy(history=cast(History, name), scope=scope or "step", on_wrong=on_wrong, profile=profile)


def refuse_structured(options: RunOptions) -> None:
    """Refuse answers in JSON where others are answered in words.

    Raises:
        CarinaError: The profile chexpercept would read numbers of the reasoning, or examples and corrected answers
            would show answers in words.
    """
    if not options.request.structured:
        return
    for given, is_given in (
        ("the profile chexpercept", options.policy.profile == "chexpercept"),
        ("examples", options.examples is not None),
        ("the history gold", options.policy.history == "gold"),
    ):
        if is_given:
            raise CarinaError(
                f"structured: {given} has answers in words, not in JSON; leave one of the two out"
            )


# ---- which cases ----------------------------------------------------------------------------------------------------


def select_cases(
    benchmark: Benchmark,
    *,
    limit: int | None,
    sample_per_stratum: int | None,
    seed: int,
    split: Split | None = None,
) -> tuple[str, ...] | None:
    """Select the cases to run: all, the first few, or a random sample of every stratum (lesion and path).

    For the same seed, a larger number selects all cases that a smaller one selects, so that a run can be extended.

    Returns:
        Ids of the selected cases in the order of the benchmark; None where all are selected.

    Raises:
        CarinaError: A number is below 1.
    """
    for name, number in (("limit", limit), ("sample_per_stratum", sample_per_stratum)):
        if number is not None and number < 1:
            raise CarinaError(f"{name} {number}: expected 1 or more")
    if limit is None and sample_per_stratum is None and split is None:
        return None
    table = benchmark.table(["id", "protocol", "target", "path", "split"]).collect()
    rows = [row[:-1] for row in table.rows() if split is None or row[-1] == split]
    if not rows and split is not None:
        held = ", ".join(sorted(table["split"].drop_nulls().unique())) or "none"
        raise CarinaError(f"{benchmark.directory}: no cases of the split {split!r}; its splits: {held}")
    if sample_per_stratum is None:
        return tuple(row[0] for row in rows[:limit])
    sample = _sample([(row[0], _stratum(*row[1:])) for row in rows], sample_per_stratum, seed)
    selected = frozenset(sample[:limit])
    return tuple(row[0] for row in rows if row[0] in selected)


def rank_by_stratum(rows: Sequence[tuple[str, str, str | None, str | None]], seed: int) -> list[str]:
    """All cases in a random order, one of every stratum before a second one of any.

    Args:
        rows: Id, protocol, target and path of each case.
        seed: Seed of the order.
    """
    return _sample([(row[0], _stratum(*row[1:])) for row in rows], len(rows), seed)


def _stratum(protocol: str, target: str | None, path: str | None) -> str:
    return Case(
        id="",
        study="",
        patient=None,
        source="",
        images=(),
        steps=(),
        protocol=protocol,
        target=target,
        path=path,
    ).cell


def _sample(cases: Sequence[tuple[str, str]], number: int, seed: int) -> list[str]:
    """Sample the same number of cases per stratum: first one of every stratum, then a second one.

    The random number of a case depends on the seed and the case alone.
    """
    strata: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for name, stratum in cases:
        strata[stratum].append((shares(seed, "sample", name)(), name))
    ranked = [
        (rank, *case)
        for cases_of_stratum in strata.values()
        for rank, case in enumerate(sorted(cases_of_stratum))
        if rank < number
    ]
    return [name for _, _, name in sorted(ranked)]
