"""What the stages of a protocol are called on pages: the one place where pages know a protocol by name."""

from typing import Final

_TITLES: Final = {
    "trek": {
        1: "Images and technique",
        2: "Findings and devices",
        3: "A closer look",
        4: "How it hangs together",
        5: "Comparison",
        6: "Expected course",
        7: "Advice",
        8: "Report",
    },
}


def stage_title(protocol: str, stage: int) -> str:
    """The name of a stage; its number alone where the protocol has no names for them."""
    return _TITLES.get(protocol, {}).get(stage, f"Stage {stage}")
