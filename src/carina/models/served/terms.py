"""Which data may be sent to a served model: without the user's word, that of restricted sources stays here."""

import re
from collections.abc import Iterable
from typing import Final

from carina.models.served.address import is_on_this_machine
from carina.store.errors import CarinaError
from carina.studies import SourceInfo

_OPEN_LICENCE: Final = re.compile(
    r"(?:cc[ -]?0|cc[ -]by|creative commons|public domain|mit(?: licen[cs]e)?$|apache\b|bsd\b|synthetic\b|none needed\b"
    r"|open data\b)"
)
"""How licences begin that allow data to be passed on. MIT stands alone: it is also the beginning of names of places."""


def refuse_restricted(
    sources: Iterable[SourceInfo], model: str, *, base_url: str | None, accept_terms: bool
) -> bool:
    """Refuse to send data of restricted sources to another machine, unless the user states that it is allowed.

    The terms of a source cover its images and everything that was derived from its reports: without images the
    questions are still covered.

    Args:
        sources: Sources of the data.
        model: Name of the model in inspect-ai.
        base_url: Address of its server; None for that of the environment or of the provider.
        accept_terms: Whether the user states that the terms allow sending the data to the provider.

    Returns:
        Whether the data must stay on this machine, which `ServedModel` ensures with `stay_local`.

    Raises:
        CarinaError: The data must stay on this machine, and the model is elsewhere.
    """
    if accept_terms:
        return False
    restricted = [source for source in sources if not _OPEN_LICENCE.match(source.licence.strip().lower())]
    if restricted and not is_on_this_machine(model, base_url):
        raise CarinaError(
            f"source {restricted[0].name}: its terms are {restricted[0].licence!r}, and {model} is served by another "
            "party; pass --accept-terms (accept_terms=True) if the terms allow sending the cases there"
        )
    return bool(restricted)
