"""What decides the probes of a benchmark, beside the studies."""

from dataclasses import dataclass
from typing import Literal, get_args

from carina.errors import CarinaError
from carina.studies.vocabulary import Split

Fusion = Literal["union", "majority", "intersection", "first"]
"""How regions of several annotators become one: every pixel that one of them marked, that at least half of them did,
that all did, or the marks of the first by name alone."""
Ask = Literal["finding", "phrase"]
"""What is looked for: a finding by its name, or what a sentence of the report says of it."""


@dataclass(frozen=True, kw_only=True)
class GroundOptions:
    seed: int = 0
    per_target: int | None = None
    """Most probes of a finding that is there; None for all."""
    absent: float = 1.0
    """Probes of a finding that is not there, for each one of a finding that is."""
    targets: tuple[str, ...] = ()
    """Findings to look for; all that are drawn where there is none."""
    split: str | None = None
    fusion: Fusion = "union"
    ask: Ask = "finding"
    lateral: bool = False
    """Whether lateral views are asked about too."""

    def __post_init__(self) -> None:
        if self.per_target is not None and self.per_target < 1:
            raise CarinaError(f"at least one probe for each finding, not {self.per_target}")
        if not 0 <= self.absent <= 10:
            raise CarinaError(
                f"probes of absent findings for each present one: between 0 and 10, not {self.absent}"
            )
        if self.fusion not in get_args(Fusion):
            raise CarinaError(f"fusion {self.fusion!r}: expected one of {', '.join(get_args(Fusion))}")
        if self.ask not in get_args(Ask):
            raise CarinaError(f"ask {self.ask!r}: expected one of {', '.join(get_args(Ask))}")
        if self.split is not None and self.split not in get_args(Split):
            raise CarinaError(f"unknown split {self.split!r}; expected one of {', '.join(get_args(Split))}")
        if len(set(self.targets)) < len(self.targets):
            raise CarinaError(f"a finding is named twice: {', '.join(self.targets)}")
