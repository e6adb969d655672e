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


class GroundBuildReport(BuildReport, frozen=True, kw_only=True):
    """`build.json` of a ground benchmark."""

    targets: tuple[TargetReport, ...]
