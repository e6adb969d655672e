"""The fourteen labels of CheXpert, which several data sets use: 1, 0, -1 (uncertain) and blank (not mentioned).

"No Finding" says that none of the other labels but "Support Devices" is positive or uncertain. It does not say that the
image is normal: what is not one of these labels was not looked for.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from carina.sources._labels import assess_labels
from carina.sources._study_draft import StudyDraft
from carina.sources._tables import Row
from carina.sources._values import read_certainty
from carina.studies.model import Assessed
from carina.studies.vocabulary import Certainty

NO_FINDING: Final = "No Finding"
LABELS: Final = (
    NO_FINDING, "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema", "Consolidation",
    "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture", "Support Devices",
)  # fmt: skip
FINDINGS: Final = LABELS[1:]
"""The labels that name something to look for."""
NO_DEVICES: Final = tuple(label for label in FINDINGS if label != "Support Devices")
"""The labels that "No Finding" covers."""
SYNONYMS: Final[Mapping[str, str]] = {"Airspace Opacity": "Lung Opacity", "No Findings": NO_FINDING}
"""How some files call a label of the list."""
_CODES: Final[Mapping[Certainty | None, str]] = {
    "present": "1",
    "absent": "0",
    "uncertain": "u",
    None: " ",
}
_MEANINGS: Final = {code: certainty for certainty, code in _CODES.items()}


def find_columns(header: Sequence[str]) -> dict[str, str]:
    """The column of every label that a table has, by our name of the label; the order of columns does not matter."""
    return {name: column for column in header if (name := SYNONYMS.get(column, column)) in LABELS}


def read_labels(row: Row, columns: Mapping[str, str]) -> str:
    """The labels of a row as one letter each, in the order of `LABELS`; a table may have millions of rows.

    Raises:
        RecordError: A value is none of 1, 0, -1 and blank.
    """
    return "".join(
        _CODES[read_certainty(row.optional_number(columns[label]), columns[label])]
        if label in columns
        else " "
        for label in LABELS
    )


def state_labels(
    draft: StudyDraft, labels: str, columns: Mapping[str, str], *, covered: Sequence[str] = NO_DEVICES
) -> None:
    """State what the labels of a row say; what is blank is not stated.

    Args:
        draft: The study.
        labels: The row, as `read_labels` gives it.
        columns: The column of every label that the table has.
        covered: What "No Finding" covers; nothing for a row beside one that is trusted more.
    """
    for label, code in zip(LABELS, labels, strict=True):
        certainty = _MEANINGS[code]
        if label != NO_FINDING and certainty is not None:
            draft.state(columns[label], certainty, words=label)
    if _MEANINGS[labels[LABELS.index(NO_FINDING)]] == "present":
        draft.state_no_finding(covered)


def list_filled(labels: str) -> list[str]:
    """The labels of a row that are not blank, without "No Finding"."""
    return [
        label
        for label, code in zip(LABELS, labels, strict=True)
        if _MEANINGS[code] is not None and label != NO_FINDING
    ]


def assess_expert(labels: str, *, text: bool) -> Assessed:
    """What a radiologist looked for, beside what "No Finding" covers: the labels of the row that are filled.

    Args:
        labels: The row, as `read_labels` gives it.
        text: Whether the radiologist read the report, and not the images.
    """
    listed = list_filled(labels)
    return assess_labels(listed, text=text) if listed else Assessed(text=text)
