"""The fourteen labels of CheXpert, which several data sets use: 1, 0, -1 (uncertain) and blank (not mentioned)."""

from collections.abc import Mapping, Sequence
from typing import Final

from carina.sources._study_draft import StudyDraft
from carina.sources._tables import Row
from carina.sources._values import read_certainty
from carina.studies.vocabulary import Certainty

NO_FINDING: Final = "No Finding"
LABELS: Final = (
    NO_FINDING, "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema", "Consolidation",
    "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture", "Support Devices",
)  # fmt: skip
FINDINGS: Final = LABELS[1:]
"""The labels that name something to look for."""
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


def state_labels(draft: StudyDraft, labels: str, columns: Mapping[str, str]) -> None:
    """State what the labels of a row say; what is blank is not stated."""
    for label, code in zip(LABELS, labels, strict=True):
        certainty = _MEANINGS[code]
        if label == NO_FINDING:
            if certainty == "present":
                draft.state_normal(columns[label])
        elif certainty is not None:
            draft.state(columns[label], certainty, words=label)
