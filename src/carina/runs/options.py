"""How a model is run: the options of `carina run`, history policies by their names, and the selection of cases."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast

from carina.cases import Benchmark, Case
from carina.models import Sampling
from carina.runs.records import History, Policy, Profile, Scope
from carina.store.errors import CarinaError
from carina.store.results import Location, as_path
from carina.store.seeding import shares
from carina.store.workers import Engine

HistoryName = Literal["own", "gold", "hint", "none", "implicit", "explicit"]
"""History policies, with CheXpercept's names for gold and hint."""
_CHEXPERCEPT: Final = {"none": "own", "implicit": "gold", "explicit": "hint"}
"""CheXpercept's settings, and the history policy that each is."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a model is run; the arguments of `carina.run` as one record."""

    policy: Policy = field(default_factory=Policy)
    blind: bool = False
    max_side: int | None = None
    limit: int | None = None
    sample_per_stratum: int | None = None
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)
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
    max_tokens: int,
    images: Location | None,
) -> RunOptions:
    """The options that decide what is asked."""
    return RunOptions(
        policy=make_policy(history, scope, on_wrong, profile),
        blind=blind,
        max_side=max_side,
        limit=limit,
        sample_per_stratum=sample_per_stratum,
        seed=seed,
        sampling=Sampling(
            temperature=temperature if temperature is not None and temperature >= 0 else None,
            max_tokens=max_tokens,
        ),
        images=None if images is None else as_path(images),
    )


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


# ---- which cases ----------------------------------------------------------------------------------------------------


def select_cases(
    benchmark: Benchmark, *, limit: int | None, sample_per_stratum: int | None, seed: int
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
    if limit is None and sample_per_stratum is None:
        return None
    rows = benchmark.table(["id", "protocol", "target", "path"]).collect().rows()
    if sample_per_stratum is None:
        return tuple(row[0] for row in rows[:limit])
    sample = _sample([(row[0], _stratum(*row[1:])) for row in rows], sample_per_stratum, seed)
    selected = frozenset(sample[:limit])
    return tuple(row[0] for row in rows if row[0] in selected)


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
