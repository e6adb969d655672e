"""Words in a label that say whether what it names is present: "no effusion", "nodule?", "possible pneumothorax"."""

import re
from functools import lru_cache
from typing import Final

from carina.studies.vocabulary import Certainty

_HEDGES_BEFORE: Final = (
    r"(?:can ?not|can't|could not) (?:exclude|rule out)", r"r/o|rule out", r"(?:low |high )?suspicion (?:of|for)",
    r"suspicious (?:of|for)", r"suspected|suspect|susp\.?", r"possible|possibly|poss\.?",
    r"probable|probably|prob\.?", r"likely|unlikely", r"questionable|question of|query",
    r"presumed|presumable|presumably", r"equivocal|uncertain|unsure", r"concern(?:ing)? for",
    r"maybe|may be|might be|could be",
)  # fmt: skip
_HEDGES_AFTER: Final = (
    r"(?:can ?not|can't|could not) be (?:excluded|ruled out)", r"(?:is |are )?not excluded", r"to be ruled out",
    r"suspected|susp\.?", r"possible|possibly", r"probable|probably", r"likely|unlikely", r"questionable",
    r"equivocal|uncertain|unsure",
)  # fmt: skip
_DENIALS_BEFORE: Final = (
    r"(?:no|without)(?: (?:definite|obvious|visible|convincing))?(?: (?:evidence|signs?|indication) (?:of|for))?",
    r"not?", r"absence of|absent", r"(?:is |are )?(?:negative|neg\.?) for|negative", r"free of", r"ruled out",
)  # fmt: skip
_DENIALS_AFTER: Final = (
    r"(?:is |are )?(?:absent|negative|excluded|ruled out)", r"(?:is |are )?not (?:seen|present|visible|identified)",
    r"none|no",
)  # fmt: skip
_GAP: Final = r"[\s_:,;.()\[\]/-]*"


def _before(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"^{_GAP}(?:{'|'.join(patterns)})(?![^\W_])", re.IGNORECASE)


def _after(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns)}){_GAP}$", re.IGNORECASE)


_UNCERTAIN: Final = (re.compile(r"\?"), _before(_HEDGES_BEFORE), _after(_HEDGES_AFTER))
_ABSENT: Final = (_before(_DENIALS_BEFORE), _after(_DENIALS_AFTER))
_JOINED_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SIGNS: Final = " \t\n_:,;.-/"


@lru_cache(maxsize=4096)
def split_certainty(label: str) -> tuple[str, Certainty]:
    """What a label names, and whether it says of itself that this is uncertain or absent.

    Args:
        label: A label as a person wrote it.

    Returns:
        The label without the words and signs that say so, and "uncertain", "absent", or "present" where there are none.
        A label with a hedge and a denial is uncertain. The text is empty where a label has no other words.

    Example:
        >>> split_certainty("Pneumothorax?"), split_certainty("r/o TB"), split_certainty("no_effusion")
        (('Pneumothorax', 'uncertain'), ('TB', 'uncertain'), ('effusion', 'absent'))
        >>> split_certainty("Lung Opacity"), split_certainty("negative")
        (('Lung Opacity', 'present'), ('', 'absent'))
    """
    text = _JOINED_WORDS.sub(" ", label).replace("_", " ")
    certainty: Certainty = "present"
    patterns = [(pattern, "uncertain") for pattern in _UNCERTAIN] + [
        (pattern, "absent") for pattern in _ABSENT
    ]
    while text.strip():
        for pattern, meaning in patterns:
            shorter = pattern.sub(" ", text, count=1)
            if shorter != text:
                text = shorter
                certainty = "uncertain" if "uncertain" in (certainty, meaning) else "absent"
                break
        else:
            break
    if certainty == "present":
        return label, certainty
    return re.sub(r"[(\[]\s*[)\]]", " ", text).strip(_SIGNS).rstrip("([").lstrip(")]").strip(
        _SIGNS
    ), certainty
