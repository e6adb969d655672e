"""Where the gates of every protocol draw the line."""

import msgspec


class Thresholds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of an audit. A level is the share of honest benchmarks that one gate would stop."""

    warn_level: float = 0.05
    """Above chance by more than its one-sided 95% interval: worth a look."""
    fail_level: float = 0.01
    """Failing at 0.05 would stop an honest benchmark in one audit out of five, since several gates test for chance."""
    slack: float = 0.0
    """How far a share may be off chance before that counts. In a large set every difference is sure, however small."""
    least_cases: int = 30
    """Fewer say nothing about what can be learned from the words of a question."""
    most_cases: int = 4000
    """As many of each task, drawn by a hash of their ids, are enough to learn from."""
    near_duplicate: float = 0.98
    """Masks on one image that overlap more are the same question twice."""
    render: int = 300
    """Views that are drawn as a trial."""
    worst: int = 12
    """Records that a gate names."""
