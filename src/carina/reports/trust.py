"""What counts more where the records of a study contradict its report."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from carina.store.errors import CarinaError

Evidence = Literal["drawing", "label", "text"]
TRUST: Final[tuple[Evidence, ...]] = get_args(Evidence)
"""What counts more comes first."""
DEFAULT_TRUST: Final = "drawing,label,text"
"""The same as an option."""
OnConflict = Literal["skip", "ask"]
"""Whether a finding about which the records contradict each other is left out, or asked about."""


def check_trust(trust: Sequence[str]) -> tuple[Evidence, ...]:
    """The order of trust, checked.

    Raises:
        CarinaError: It does not name "drawing", "label" and "text" once each.
    """
    if sorted(trust) != sorted(TRUST):
        raise CarinaError(f"trust {', '.join(trust)!r}: expected {', '.join(TRUST)} in any order, each once")
    return tuple(name for given in trust for name in TRUST if name == given)


def split_trust(text: str) -> tuple[Evidence, ...]:
    """The order of trust from names with commas between: "drawing,label,text"."""
    return check_trust([name.strip() for name in text.split(",")])


def is_trusted(origin: Evidence, trust: Sequence[Evidence]) -> bool:
    """Whether a kind of record is trusted more than the text."""
    return trust.index(origin) < trust.index("text")
