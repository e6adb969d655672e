"""What the wording of one language must hold: every pool and phrase, how many texts each, and the slots they may use.

Data for `carina.trek.wording.lint`; the builder reads none of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from carina.trek.wording import GAP


def words(text: str) -> frozenset[str]:
    """The words of a text, for tables that are easier to read without quotation marks."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class TextShape:
    """How many texts a list must have, and which slots they may use."""

    least: int
    slots: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    """Slots that every text must contain."""


@dataclass(frozen=True, slots=True)
class PoolShape:
    """A pool: its questions, and its answers by kind."""

    questions: TextShape
    answers: Mapping[str, TextShape] = field(default_factory=dict)


def _pool(
    least: int, slots: str, /, *, needs: str = "", answers: Mapping[str, TextShape] | None = None
) -> PoolShape:
    return PoolShape(TextShape(least, words(slots), words(needs)), answers or {})


def _answers(kinds: str, least: int, slots: str = "", needs: str = "") -> dict[str, TextShape]:
    return {kind: TextShape(least, words(slots), words(needs)) for kind in kinds.split()}


_LABELS: Final = "yes no uncertain"
_NAMED: Final = "a_finding finding"
_COURSE: Final = "worse improved unchanged resolved"
_DEVICE_COURSE: Final = "worse_device improved_device unchanged_device resolved_device"
_SOME_OR_NONE: Final = {**_answers("some", 8, "list", "list"), **_answers("none", 8)}
_LIST: Final = {
    **_SOME_OR_NONE,
    **_answers("some_and_possible", 8, "list possible", "list possible"),
    **_answers("possible", 8, "possible", "possible"),
}
_BOXES: Final = _answers("any", 6, "boxes", "boxes")
_ADVICE: Final = {
    **_answers("any", 8, "actions quote because", "actions quote"),
    **_answers("unquoted", 8, "actions because", "actions"),
}


def _attribute_pools(
    value: str,
    *,
    questions: tuple[int, int, int],
    closed_answers: int = 8,
    stated: str | None = None,
    has_gap: bool = True,
    yes_repeats_value: bool = True,
) -> dict[str, PoolShape]:
    """The pools of an attribute: open, yes/no and choice.

    Args:
        value: Slot of the value in a yes/no question.
        questions: Least number of open, yes/no and choice questions.
        closed_answers: Least number of answers "yes", and of answers "no".
        stated: Slot of the value in an answer, where it is another one; "right_" and this in an answer "no".
        has_gap: Whether an open question may leave a blank.
        yes_repeats_value: Whether every answer "yes" must contain the value.
    """
    stated = stated or value
    right = f"right_{stated}"
    named = "the_finding"
    return {
        "open": _pool(
            questions[0],
            named,
            needs=named,
            answers={
                **_answers("any", 8, f"{named} {stated}", stated),
                **(_answers(GAP, 1, stated, stated) if has_gap else {}),
            },
        ),
        "yes_no": _pool(
            questions[1],
            f"{named} {value}",
            needs=f"{named} {value}",
            answers={
                **_answers("yes", closed_answers, f"{named} {value}", value if yes_repeats_value else ""),
                **_answers("no", closed_answers, f"{named} {value} {right}", right),
            },
        ),
        "choice": _pool(questions[2], named, needs=named),
    }


POOLS: Final[Mapping[int, Mapping[str, Mapping[str, PoolShape]]]] = {
    1: {
        "view": {
            "open": _pool(
                60,
                "images",
                answers={
                    **_answers("one", 8, "views", "views"),
                    **_answers("several", 8, "views count", "views"),
                    **_answers(GAP, 1, "views", "views"),
                },
            ),
            "choice": _pool(30, "images"),
        },
        "quality": {
            "open": _pool(
                60, "images", answers=_answers("any", 8, "criteria overall views", "criteria overall")
            ),
            "choice": _pool(30, "images"),
        },
    },
    2: {
        "any abnormality": {"yes_no": _pool(45, "images", answers=_answers(_LABELS, 10))},
        "any device": {"yes_no": _pool(45, "images", answers=_answers(_LABELS, 10))},
        "presence": {
            "yes_no": _pool(90, f"{_NAMED} images", answers=_answers(_LABELS, 15, _NAMED)),
            "yes_no/sited": _pool(
                50, f"{_NAMED} images at", needs="at", answers=_answers(_LABELS, 15, f"{_NAMED} at", "at")
            ),
            "choice": _pool(40, "images"),
            "choice/multiple": _pool(40, "images"),
        },
        "device presence": {
            "yes_no": _pool(70, f"{_NAMED} images", answers=_answers(_LABELS, 15, _NAMED)),
            "choice": _pool(30, "images"),
            "choice/multiple": _pool(30, "images"),
        },
        "abnormalities": {"open": _pool(45, "images", answers=_LIST), "choice": _pool(30, "images")},
        "devices": {"open": _pool(45, "images", answers=_LIST), "choice": _pool(30, "images")},
        "abnormalities and devices": {
            "open": _pool(
                45,
                "images",
                answers={
                    **_answers("both", 8, "list devices", "list devices"),
                    **_answers("findings", 8, "list", "list"),
                    **_answers("devices", 8, "devices", "devices"),
                    **_answers("none", 8),
                },
            ),
            "choice": _pool(30, "images"),
        },
        "others": {
            "open": _pool(
                40,
                "known images",
                needs="known",
                answers=_SOME_OR_NONE,
            ),
            "open/neutral": _pool(40, "images", answers=_SOME_OR_NONE),
            "choice": _pool(30, "known images", needs="known"),
        },
    },
    3: {
        "location": {
            **_attribute_pools("at", questions=(70, 45, 45)),
            "choice/multiple": _pool(25, "the_finding", needs="the_finding"),
        },
        "side": _attribute_pools("on_side", questions=(25, 20, 20), closed_answers=5, has_gap=False),
        "severity": _attribute_pools("grade", questions=(45, 30, 35)),
        "appearance": _attribute_pools(
            "look", questions=(45, 25, 30), stated="looks", yes_repeats_value=False
        ),
        "distribution": _attribute_pools("spread", questions=(40, 25, 30)),
        "position": {
            "open": _pool(
                40,
                "the_finding",
                needs="the_finding",
                answers=_answers("adequate malpositioned", 8, "the_finding at", "at"),
            ),
            "yes_no": _pool(
                25,
                "the_finding",
                needs="the_finding",
                answers=_answers("yes no", 8, "the_finding at", "at"),
            ),
            "choice": _pool(25, "the_finding", needs="the_finding"),
        },
        "measure": {
            "open": _pool(
                40,
                "the_finding quantity",
                needs="the_finding quantity",
                answers={
                    **_answers("any", 8, "the_finding quantity value", "value"),
                    **_answers(GAP, 1, "value", "value"),
                },
            )
        },
        "description": {
            "open": _pool(
                70,
                "the_finding images",
                needs="the_finding",
                answers=_answers("any uncertain", 8, "described", "described"),
            )
        },
        "region content": {
            "open": _pool(
                50,
                "the_region image",
                needs="the_region",
                answers={
                    **_answers("some", 8, "the_region list", "list"),
                    **_answers("possible", 8, "the_region possible", "possible"),
                    **_answers("none", 8, "the_region"),
                },
            ),
            "yes_no": _pool(
                40,
                "the_region image",
                needs="the_region",
                answers={
                    **_answers("yes", 8, "the_region list", "list"),
                    **_answers("no", 8, "the_region"),
                },
            ),
        },
        "statement": {"choice": _pool(45, "the_finding", needs="the_finding")},
        "vignette": {"choice": _pool(45, "indication images", needs="indication")},
        "region box": {"boxes": _pool(90, "the_region image", needs="the_region", answers=_BOXES)},
        "finding box": {
            "boxes": _pool(40, "the_finding image", needs="the_finding", answers=_BOXES),
            "boxes/several": _pool(30, "the_finding image", needs="the_finding", answers=_BOXES),
            "boxes/phrase": _pool(40, "phrase image", needs="phrase", answers=_BOXES),
        },
        "box content": {
            "open": _pool(
                45,
                "box image",
                needs="box",
                answers={
                    **_answers("some", 8, "list", "list"),
                    **_answers("possible", 8, "possible", "possible"),
                },
            )
        },
    },
    4: {
        "relations": {
            "open": _pool(60, "images", answers=_answers("any", 8, "chain list", "chain")),
            "open/restating": _pool(
                50, "images list", needs="list", answers=_answers("any", 8, "chain list", "chain")
            ),
        },
        "relation": {
            "open": _pool(
                60,
                "the_finding the_other",
                needs="the_finding the_other",
                answers=_answers(
                    "causes accompanies suggests", 8, "the_finding the_other described described_other"
                ),
            )
        },
    },
    5: {
        "comparison": {
            "open": _pool(
                80,
                "images reference",
                answers={**_answers("changed stable", 8, "changes", "changes"), **_answers("none", 8)},
            )
        },
        "trend": {
            "open": _pool(
                70,
                "the_finding reference",
                needs="the_finding",
                answers={
                    **_answers("new", 8, "the_finding described", "described"),
                    **_answers("worse improved unchanged", 8, "the_finding described before"),
                    **_answers("resolved", 8, "the_finding before"),
                    **_answers("new_device", 3, "the_finding described", "described"),
                    **_answers(
                        "worse_device improved_device unchanged_device", 3, "the_finding described before"
                    ),
                    **_answers("resolved_device", 3, "the_finding before"),
                },
            )
        },
        "change": {"choice": _pool(50, "the_finding reference", needs="the_finding")},
    },
    6: {
        "outlook": {"open": _pool(60, "images", answers=_answers("any", 8, "changes", "changes"))},
        "finding outlook": {
            "open": _pool(
                60,
                "the_finding",
                needs="the_finding",
                answers={
                    **_answers(_COURSE, 8, "the_finding described"),
                    **_answers(_DEVICE_COURSE, 3, "the_finding described"),
                },
            )
        },
        "prognosis": {
            "open": _pool(
                60, "images", answers=_answers("better worse stable mixed", 8, "changes", "changes")
            )
        },
    },
    7: {
        "advice": {
            "open": _pool(70, "images", answers=_ADVICE),
            "open/restating": _pool(70, "images list", needs="list", answers=_ADVICE),
        }
    },
    8: {
        "full report": {"report": _pool(60, "images")},
        "findings section": {"report": _pool(60, "images")},
        "impression": {"report": _pool(90, "images")},
        "impression from findings": {"report": _pool(60, "findings", needs="findings")},
    },
}
"""By stage, family and variant."""


def _phrases(place: str, kinds: str, least: int, slots: str = "", needs: str = "") -> dict[str, TextShape]:
    texts = TextShape(least, words(slots), words(needs))
    return {f"{place} / {kind}": texts for kind in kinds.split(", ")}


PHRASES: Final[Mapping[int, Mapping[str, TextShape]]] = {
    1: {
        **_phrases("rotation", "none, left, right", 5),
        **_phrases("inspiration", "adequate, poor", 5),
        **_phrases("exposure", "adequate, over, under", 5),
        **_phrases("coverage", "complete", 5),
        **_phrases("coverage", "cut_off", 5, "parts", "parts"),
        **_phrases("overall", "adequate, limited", 5),
    },
    2: _phrases("nothing", "abnormalities, devices", 6),
    3: {
        **_phrases("statement", "location", 6, "at", "at"),
        **_phrases("statement", "severity", 6, "grade", "grade"),
        **_phrases("statement", "appearance", 6, "looks", "looks"),
        **_phrases("statement", "distribution", 6, "spread", "spread"),
    },
    4: _phrases(
        "relation",
        "causes, accompanies, suggests",
        10,
        "the_finding the_other",
        "the_finding the_other",
    ),
    5: {
        **_phrases("change", "from_to", 6, "before now", "before now"),
        **_phrases("change / trend", "new, worse, improved, unchanged, resolved", 6),
        **_phrases("trend", "new, worse, improved, unchanged, resolved", 10, "the_finding", "the_finding"),
        **_phrases(
            "trend_device", "new, worse, improved, unchanged, resolved", 6, "the_finding", "the_finding"
        ),
    },
    6: {
        **_phrases("future", "new", 8, "a_finding", "a_finding"),
        **_phrases("future", "worse, improved, unchanged, resolved", 8, "the_finding", "the_finding"),
        **_phrases("future_device", "new", 4, "a_finding", "a_finding"),
        **_phrases("future_device", "worse, improved, unchanged, resolved", 4, "the_finding", "the_finding"),
    },
    7: {
        **_phrases(
            "action",
            "follow-up radiograph, chest CT, lateral view, reposition device, clinical correlation, "
            "urgent clinical attention",
            6,
            "the_finding",
        ),
        **_phrases("action", "other", 6, "action the_finding", "action"),
    },
    8: {
        **_phrases("sentence", "present, uncertain, device", 8, "described", "described"),
        **_phrases("sentence", "absent", 8, "finding", "finding"),
        **_phrases("impression", "present, uncertain", 8, "described", "described"),
        **_phrases("impression", "normal", 8),
    },
}
"""By stage; the keys are places within `phrases`."""

SENTENCES: Final = frozenset({8})
"""Stages whose phrases are whole sentences; those of the others are clauses."""

COMMON: Final[Mapping[str, TextShape]] = {
    **_phrases("images", "one, several", 12),
    **_phrases("lead_in / current", "one, several", 11),
    **_phrases("lead_in / current", "only_one, all_of_several", 2),
    **_phrases("lead_in / reference", "one, several", 11),
    **_phrases("lead_in / reference", "only_one, all_of_several", 2),
    **_phrases("reference", "one, several", 8),
    **_phrases("instruction", "at_most, at_least", 10, "words", "words"),
    **_phrases("instruction", "short, long, history, yes_no_only, yes_no_free, several, one", 10),
    **_phrases("instruction / answer_only", "before, after", 5),
    "none_of_these": TextShape(12),
    **_phrases("frame", "pixel, percent, thousand", 3),
    "indication": TextShape(10, words("indication"), words("indication")),
    **_phrases("grade", "mild, moderate, severe", 1),
    **_phrases("spread", "focal, multifocal, diffuse", 1),
    **_phrases("trend", "new, worse, improved, unchanged, resolved", 1),
    **_phrases("view", "PA, AP, lateral", 1),
}
"""Lists of `common.yaml`."""

COMMON_SENTENCES: Final = ("lead_in", "instruction", "frame", "indication")
"""Groups of `common.yaml` that hold whole sentences; the others hold words and noun phrases."""
PLACE: Final = {
    "zones": words("zones"),
    "side": words("side"),
    "bilateral": frozenset[str](),
    "midline": frozenset[str](),
    "site": words("site"),
    "and": frozenset[str](),
    "both": frozenset[str](),
}
VIEWS: Final = ("PA", "AP", "lateral", "unknown")

SAMPLES: Final[Mapping[str, str]] = {
    "a_finding": "a pleural effusion",
    "action": "a specialist's opinion",
    "actions": "A chest CT should follow.",
    "at": "in the right lower zone",
    "because": "a nodule",
    "before": "a small nodule",
    "box": "[10, 20, 30, 40]",
    "boxes": "[10, 20, 30, 40]",
    "chain": "The mass causes the collapse.",
    "changes": "The effusion is larger.",
    "count": "two",
    "criteria": "the patient is not rotated",
    "described": "a small nodule in the left upper zone",
    "described_other": "a moderate collapse of the right lung",
    "devices": "a chest tube",
    "finding": "pleural effusion",
    "findings": "The lungs are clear.",
    "grade": "mild",
    "image": "the frontal radiograph",
    "images": "these radiographs",
    "indication": "Cough for two weeks.",
    "known": "cardiomegaly",
    "list": "a nodule and cardiomegaly",
    "look": "patchy",
    "looks": "patchy, air bronchograms",
    "now": "a large mass",
    "overall": "the quality suffices",
    "parts": "the left costophrenic angle",
    "phrase": "There is a small nodule",
    "possible": "a fracture",
    "quantity": "diameter",
    "quote": "Follow-up is advised.",
    "reference": "the earlier radiograph",
    "right_at": "on the left",
    "on_side": "on the right",
    "right_on_side": "on the left",
    "right_grade": "severe",
    "right_looks": "plate-like",
    "right_spread": "diffuse",
    "side": "right",
    "site": "above the carina",
    "spread": "focal",
    "the_finding": "the pleural effusion",
    "the_other": "the cardiomegaly",
    "the_region": "the left lower zone",
    "value": "1.6 cm",
    "views": "a PA view",
    "words": "20",
    "zones": "right mid and lower zones",
}
"""One value for every slot: a text that is filled with these must be correct."""
