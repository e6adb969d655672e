"""What `carina build ground` reports."""

import msgspec

from carina.cases.build_report import BuildReport


class TargetReport(msgspec.Struct, frozen=True, kw_only=True):
    """One finding: how many probes were built, and why not more."""

    target: str
    present: int
    """Positive probes."""
    absent: int
    """Negative probes."""
    left_out: dict[str, int]
    """Studies that have the finding and give no positive probe, by reason."""
    no_controls: dict[str, int]
    """Studies without it that give no negative probe, by reason."""


class PresenceAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far readers who looked at the same images agree on the presence of a finding, whether it is asked or not."""

    target: str
    images: int
    """Studies that two readers or more have looked at."""
    patients: int
    agreement: float | None
    """Share of pairs of readers who say the same."""
    alpha: float | None
    """Krippendorff's alpha; for two readers it is close to kappa. None where all say the same everywhere."""
    low: float | None
    high: float | None
    """95% interval of alpha over patients."""


class GroundBuildReport(BuildReport, frozen=True, kw_only=True):
    """`build.json` of a ground benchmark."""

    targets: tuple[TargetReport, ...]
    unknown_targets: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Findings with probes whose names are not known and that the user has not mapped at import, each with the nearest
    known name."""
    presence: tuple[PresenceAgreement, ...] = ()
    """Agreement of readers on presence, by finding; empty where the source does not say who looked."""
