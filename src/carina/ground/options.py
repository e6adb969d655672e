"""Options of `build_ground`, checked."""

from dataclasses import dataclass
from typing import Literal, get_args

from carina.cases.building import check_choice
from carina.reports.trust import TRUST, Evidence, OnConflict, check_trust
from carina.store.errors import CarinaError
from carina.studies.readers import BOX_OVERLAP, FusionRule
from carina.studies.vocabulary import Split

Readers = Literal["union", "consensus", "intersection", "weighted-boxes", "first", "each"]
"""What becomes of the regions of several readers: one region by a rule of `carina.studies.readers`, or a probe for each
reader."""
Ask = Literal["finding", "phrase"]
"""What is asked for: a finding by its name, or what a sentence of the report says of it."""


@dataclass(frozen=True, kw_only=True)
class GroundOptions:
    """Options of `build_ground`, checked."""

    seed: int = 0
    per_target: int | None = None
    """Most positive probes for each finding; None for all."""
    absent: float = 1.0
    """Negative probes for each positive probe."""
    targets: tuple[str, ...] = ()
    """Findings to ask about; empty for all that are drawn."""
    split: str | None = None
    readers: Readers = "union"
    at_least: int | None = None
    """Readers who must agree, for consensus and weighted boxes; None for more than half."""
    box_overlap: float = BOX_OVERLAP
    """Least IoU of boxes that weighted boxes takes for the same thing."""
    ask: Ask = "finding"
    lateral: bool = False
    """Whether lateral views are asked about too."""
    on_conflict: OnConflict = "skip"
    trust: tuple[Evidence, ...] = TRUST
    """What counts more where the report contradicts what is recorded, if that is asked about."""

    def __post_init__(self) -> None:
        if self.per_target is not None and self.per_target < 1:
            raise CarinaError(f"per_target {self.per_target}: expected at least 1 probe for each finding")
        if not 0 <= self.absent <= 10:
            raise CarinaError(
                f"absent {self.absent}: expected 0 to 10 negative probes for each positive probe"
            )
        check_choice("readers", self.readers, get_args(Readers))
        self.rule  # noqa: B018 - checks the options of fusion
        check_choice("on_conflict", self.on_conflict, get_args(OnConflict))
        check_trust(self.trust)
        check_choice("ask", self.ask, get_args(Ask))
        check_choice("split", self.split, get_args(Split))
        if len(set(self.targets)) < len(self.targets):
            raise CarinaError(f"targets {', '.join(self.targets)}: a finding is named twice; name each once")

    @property
    def rule(self) -> FusionRule:
        """How regions of several readers become one; where each reader has a probe, there is nothing to fuse."""
        fusion = "union" if self.readers == "each" else self.readers
        return FusionRule(fusion=fusion, at_least=self.at_least, box_overlap=self.box_overlap)
