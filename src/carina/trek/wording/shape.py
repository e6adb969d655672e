"""What the wording of one language must hold: every pool and phrase, how many texts each, and the slots they may use.

Data for `carina.trek.wording.lint`; the builder reads none of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from carina.trek.wording import GAP


def words(text: str) -> frozenset[str]:
    """The words of a text, for tables that would drown in quotation marks."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Texts:
    """How many texts a list must have, and which slots they may use."""

    least: int
    slots: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    """Slots without which a text would tell nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A pool: its questions, and its answers by kind."""

    questions: Texts
    answers: Mapping[str, Texts] = field(default_factory=dict)


def _pool(least: int, slots: str, /, *, needs: str = "", answers: Mapping[str, Texts] | None = None) -> Asked:
    return Asked(Texts(least, words(slots), words(needs)), answers or {})


def _kinds(kinds: str, least: int, slots: str = "", needs: str = "") -> dict[str, Texts]:
    return {kind: Texts(least, words(slots), words(needs)) for kind in kinds.split()}


_LABELS: Final = "yes no uncertain"
_NAMED: Final = "a_finding finding"
_COURSE: Final = "worse improved unchanged resolved"
_DEVICE_COURSE: Final = "worse_device improved_device unchanged_device resolved_device"

POOLS: Final[Mapping[int, Mapping[str, Mapping[str, Asked]]]] = {
    1: {
        "view": {
            "open": _pool(
                60,
                "images",
                answers={
                    **_kinds("one", 8, "views", "views"),
                    **_kinds("several", 8, "views count", "views"),
                    **_kinds(GAP, 1, "views", "views"),
                },
            ),
            "choice": _pool(30, "images"),
        },
        "quality": {
            "open": _pool(
                60, "images", answers=_kinds("any", 8, "criteria overall views", "criteria overall")
            ),
            "choice": _pool(30, "images"),
        },
    },
    2: {
        "any abnormality": {"yes_no": _pool(45, "images", answers=_kinds(_LABELS, 10))},
        "any device": {"yes_no": _pool(45, "images", answers=_kinds(_LABELS, 10))},
        "presence": {
            "yes_no": _pool(90, f"{_NAMED} images", answers=_kinds(_LABELS, 15, _NAMED)),
            "yes_no/sited": _pool(
                50, f"{_NAMED} images at", needs="at", answers=_kinds(_LABELS, 15, f"{_NAMED} at", "at")
            ),
            "choice": _pool(40, "images"),
            "choice/multiple": _pool(40, "images"),
        },
        "device presence": {
            "yes_no": _pool(70, f"{_NAMED} images", answers=_kinds(_LABELS, 15, _NAMED)),
            "choice": _pool(30, "images"),
            "choice/multiple": _pool(30, "images"),
        },
        "abnormalities": {
            "open": _pool(
                45,
                "images",
                answers={
                    **_kinds("some", 8, "list", "list"),
                    **_kinds("some_and_possible", 8, "list possible", "list possible"),
                    **_kinds("possible", 8, "possible", "possible"),
                    **_kinds("none", 8),
                },
            ),
            "choice": _pool(30, "images"),
        },
        "devices": {
            "open": _pool(
                45,
                "images",
                answers={
                    **_kinds("some", 8, "list", "list"),
                    **_kinds("some_and_possible", 8, "list possible", "list possible"),
                    **_kinds("possible", 8, "possible", "possible"),
                    **_kinds("none", 8),
                },
            ),
            "choice": _pool(30, "images"),
        },
        "abnormalities and devices": {
            "open": _pool(
                45,
                "images",
                answers={
                    **_kinds("both", 8, "list devices", "list devices"),
                    **_kinds("findings", 8, "list", "list"),
                    **_kinds("devices", 8, "devices", "devices"),
                    **_kinds("none", 8),
                },
            ),
            "choice": _pool(30, "images"),
        },
        "others": {
            "open": _pool(
                40,
                "known images",
                needs="known",
                answers={**_kinds("some", 8, "list", "list"), **_kinds("none", 8)},
            ),
            "open/neutral": _pool(
                40, "images", answers={**_kinds("some", 8, "list", "list"), **_kinds("none", 8)}
            ),
            "choice": _pool(30, "known images", needs="known"),
        },
    },
    3: {
        "location": {
            "open": _pool(
                70,
                "the_finding",
                needs="the_finding",
                answers={**_kinds("any", 8, "the_finding at", "at"), **_kinds(GAP, 1, "at", "at")},
            ),
            "yes_no": _pool(
                45,
                "the_finding at",
                needs="the_finding at",
                answers={
                    **_kinds("yes", 8, "the_finding at", "at"),
                    **_kinds("no", 8, "the_finding at right_at", "right_at"),
                },
            ),
            "choice": _pool(45, "the_finding", needs="the_finding"),
            "choice/multiple": _pool(25, "the_finding", needs="the_finding"),
        },
        "side": {
            "open": _pool(
                25,
                "the_finding",
                needs="the_finding",
                answers=_kinds("any", 8, "the_finding on_side", "on_side"),
            ),
            "yes_no": _pool(
                20,
                "the_finding on_side",
                needs="the_finding on_side",
                answers={
                    **_kinds("yes", 5, "the_finding on_side", "on_side"),
                    **_kinds("no", 5, "the_finding on_side right_on_side", "right_on_side"),
                },
            ),
            "choice": _pool(20, "the_finding", needs="the_finding"),
        },
        "severity": {
            "open": _pool(
                45,
                "the_finding",
                needs="the_finding",
                answers={
                    **_kinds("any", 8, "the_finding grade", "grade"),
                    **_kinds(GAP, 1, "grade", "grade"),
                },
            ),
            "yes_no": _pool(
                30,
                "the_finding grade",
                needs="the_finding grade",
                answers={
                    **_kinds("yes", 8, "the_finding grade", "grade"),
                    **_kinds("no", 8, "the_finding grade right_grade", "right_grade"),
                },
            ),
            "choice": _pool(35, "the_finding", needs="the_finding"),
        },
        "appearance": {
            "open": _pool(
                45,
                "the_finding",
                needs="the_finding",
                answers={
                    **_kinds("any", 8, "the_finding looks", "looks"),
                    **_kinds(GAP, 1, "looks", "looks"),
                },
            ),
            "yes_no": _pool(
                25,
                "the_finding look",
                needs="the_finding look",
                answers={
                    **_kinds("yes", 8, "the_finding look"),
                    **_kinds("no", 8, "the_finding look right_looks", "right_looks"),
                },
            ),
            "choice": _pool(30, "the_finding", needs="the_finding"),
        },
        "distribution": {
            "open": _pool(
                40,
                "the_finding",
                needs="the_finding",
                answers={
                    **_kinds("any", 8, "the_finding spread", "spread"),
                    **_kinds(GAP, 1, "spread", "spread"),
                },
            ),
            "yes_no": _pool(
                25,
                "the_finding spread",
                needs="the_finding spread",
                answers={
                    **_kinds("yes", 8, "the_finding spread", "spread"),
                    **_kinds("no", 8, "the_finding spread right_spread", "right_spread"),
                },
            ),
            "choice": _pool(30, "the_finding", needs="the_finding"),
        },
        "position": {
            "open": _pool(
                40,
                "the_finding",
                needs="the_finding",
                answers=_kinds("adequate malpositioned", 8, "the_finding at", "at"),
            ),
            "yes_no": _pool(
                25,
                "the_finding",
                needs="the_finding",
                answers=_kinds("yes no", 8, "the_finding at", "at"),
            ),
            "choice": _pool(25, "the_finding", needs="the_finding"),
        },
        "measure": {
            "open": _pool(
                40,
                "the_finding quantity",
                needs="the_finding quantity",
                answers={
                    **_kinds("any", 8, "the_finding quantity value", "value"),
                    **_kinds(GAP, 1, "value", "value"),
                },
            )
        },
        "description": {
            "open": _pool(
                70,
                "the_finding images",
                needs="the_finding",
                answers=_kinds("any uncertain", 8, "described", "described"),
            )
        },
        "region content": {
            "open": _pool(
                50,
                "the_region image",
                needs="the_region",
                answers={
                    **_kinds("some", 8, "the_region list", "list"),
                    **_kinds("possible", 8, "the_region possible", "possible"),
                    **_kinds("none", 8, "the_region"),
                },
            ),
            "yes_no": _pool(
                40,
                "the_region image",
                needs="the_region",
                answers={
                    **_kinds("yes", 8, "the_region list", "list"),
                    **_kinds("no", 8, "the_region"),
                },
            ),
        },
        "statement": {"choice": _pool(45, "the_finding", needs="the_finding")},
        "vignette": {"choice": _pool(45, "indication images", needs="indication")},
        "region box": {
            "boxes": _pool(
                90, "the_region image", needs="the_region", answers=_kinds("any", 6, "boxes", "boxes")
            )
        },
        "finding box": {
            "boxes": _pool(
                40, "the_finding image", needs="the_finding", answers=_kinds("any", 6, "boxes", "boxes")
            ),
            "boxes/several": _pool(
                30, "the_finding image", needs="the_finding", answers=_kinds("any", 6, "boxes", "boxes")
            ),
            "boxes/phrase": _pool(
                40, "phrase image", needs="phrase", answers=_kinds("any", 6, "boxes", "boxes")
            ),
        },
        "box content": {
            "open": _pool(
                45,
                "box image",
                needs="box",
                answers={
                    **_kinds("some", 8, "list", "list"),
                    **_kinds("possible", 8, "possible", "possible"),
                },
            )
        },
    },
    4: {
        "relations": {
            "open": _pool(60, "images", answers=_kinds("any", 8, "chain list", "chain")),
            "open/restating": _pool(
                50, "images list", needs="list", answers=_kinds("any", 8, "chain list", "chain")
            ),
        },
        "relation": {
            "open": _pool(
                60,
                "the_finding the_other",
                needs="the_finding the_other",
                answers=_kinds(
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
                answers={**_kinds("changed stable", 8, "changes", "changes"), **_kinds("none", 8)},
            )
        },
        "trend": {
            "open": _pool(
                70,
                "the_finding reference",
                needs="the_finding",
                answers={
                    **_kinds("new", 8, "the_finding described", "described"),
                    **_kinds("worse improved unchanged", 8, "the_finding described before"),
                    **_kinds("resolved", 8, "the_finding before"),
                    **_kinds("new_device", 3, "the_finding described", "described"),
                    **_kinds(
                        "worse_device improved_device unchanged_device", 3, "the_finding described before"
                    ),
                    **_kinds("resolved_device", 3, "the_finding before"),
                },
            )
        },
        "change": {"choice": _pool(50, "the_finding reference", needs="the_finding")},
    },
    6: {
        "outlook": {"open": _pool(60, "images", answers=_kinds("any", 8, "changes", "changes"))},
        "finding outlook": {
            "open": _pool(
                60,
                "the_finding",
                needs="the_finding",
                answers={
                    **_kinds(_COURSE, 8, "the_finding described"),
                    **_kinds(_DEVICE_COURSE, 3, "the_finding described"),
                },
            )
        },
        "prognosis": {
            "open": _pool(60, "images", answers=_kinds("better worse stable mixed", 8, "changes", "changes"))
        },
    },
    7: {
        "advice": {
            "open": _pool(
                70,
                "images",
                answers={
                    **_kinds("any", 8, "actions quote because", "actions quote"),
                    **_kinds("unquoted", 8, "actions because", "actions"),
                },
            ),
            "open/restating": _pool(
                70,
                "images list",
                needs="list",
                answers={
                    **_kinds("any", 8, "actions quote because", "actions quote"),
                    **_kinds("unquoted", 8, "actions because", "actions"),
                },
            ),
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


def _clauses(place: str, kinds: str, least: int, slots: str = "", needs: str = "") -> dict[str, Texts]:
    texts = Texts(least, words(slots), words(needs))
    return {f"{place} / {kind}": texts for kind in kinds.split(", ")}


PHRASES: Final[Mapping[int, Mapping[str, Texts]]] = {
    1: {
        **_clauses("rotation", "none, left, right", 5),
        **_clauses("inspiration", "adequate, poor", 5),
        **_clauses("exposure", "adequate, over, under", 5),
        **_clauses("coverage", "complete", 5),
        **_clauses("coverage", "cut_off", 5, "parts", "parts"),
        **_clauses("overall", "adequate, limited", 5),
    },
    2: _clauses("nothing", "abnormalities, devices", 6),
    3: {
        **_clauses("statement", "location", 6, "at", "at"),
        **_clauses("statement", "severity", 6, "grade", "grade"),
        **_clauses("statement", "appearance", 6, "looks", "looks"),
        **_clauses("statement", "distribution", 6, "spread", "spread"),
    },
    4: _clauses(
        "relation",
        "causes, accompanies, suggests",
        10,
        "the_finding the_other",
        "the_finding the_other",
    ),
    5: {
        **_clauses("change", "from_to", 6, "before now", "before now"),
        **_clauses("change / trend", "new, worse, improved, unchanged, resolved", 6),
        **_clauses("trend", "new, worse, improved, unchanged, resolved", 10, "the_finding", "the_finding"),
        **_clauses(
            "trend_device", "new, worse, improved, unchanged, resolved", 6, "the_finding", "the_finding"
        ),
    },
    6: {
        **_clauses("future", "new", 8, "a_finding", "a_finding"),
        **_clauses("future", "worse, improved, unchanged, resolved", 8, "the_finding", "the_finding"),
        **_clauses("future_device", "new", 4, "a_finding", "a_finding"),
        **_clauses("future_device", "worse, improved, unchanged, resolved", 4, "the_finding", "the_finding"),
    },
    7: {
        **_clauses(
            "action",
            "follow-up radiograph, chest CT, lateral view, reposition device, clinical correlation, "
            "urgent clinical attention",
            6,
            "the_finding",
        ),
        **_clauses("action", "other", 6, "action the_finding", "action"),
    },
    8: {
        **_clauses("sentence", "present, uncertain, device", 8, "described", "described"),
        **_clauses("sentence", "absent", 8, "finding", "finding"),
        **_clauses("impression", "present, uncertain", 8, "described", "described"),
        **_clauses("impression", "normal", 8),
    },
}
"""By stage; the keys are places within `phrases`."""

SENTENCES: Final = frozenset({8})
"""Stages whose phrases are whole sentences; those of the others are clauses."""

COMMON: Final[Mapping[str, Texts]] = {
    **_clauses("images", "one, several", 12),
    **_clauses("lead_in / current", "one, several", 13),
    **_clauses("lead_in / reference", "one, several", 13),
    **_clauses("reference", "one, several", 8),
    **_clauses("instruction", "at_most, at_least", 10, "words", "words"),
    **_clauses("instruction", "short, long, history, yes_no_only, yes_no_free, several, one", 10),
    **_clauses("instruction / answer_only", "before, after", 5),
    "none_of_these": Texts(12),
    **_clauses("frame", "pixel, percent, thousand", 3),
    "indication": Texts(10, words("indication"), words("indication")),
    **_clauses("grade", "mild, moderate, severe", 1),
    **_clauses("spread", "focal, multifocal, diffuse", 1),
    **_clauses("trend", "new, worse, improved, unchanged, resolved", 1),
    **_clauses("view", "PA, AP, lateral", 1),
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
"""One value for every slot there is: a text must read without a stumble when filled with these."""
