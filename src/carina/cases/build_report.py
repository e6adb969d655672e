"""What building a benchmark reports beside the benchmark, in `build.json`; each protocol declares its own record."""

import msgspec


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the studies that a benchmark was built from."""

    studies: int
    """Studies that were looked at."""
    conflicts: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Studies whose report contradicts what is recorded, by finding and by what contradicts what; `conflicts.csv` lists
    them."""
