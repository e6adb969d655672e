"""What a text says of the technique of an image: rotation, inspiration, exposure, coverage.

Phrases are taken out of the text one after the other, those that contain others first ("not rotated", "neither too
dark nor too light"), so that each word counts once. `POOR` is what is told to be wrong without saying in which way.
"""

import re
from collections.abc import Mapping
from typing import Final

from carina.run.score.denial import spelled_out

GOOD: Final = {"rotation": "none", "inspiration": "adequate", "exposure": "adequate", "coverage": "complete"}
"""What each criterion is like in a flawless image."""
POOR: Final = "poor"
_HALF: Final = 0.5
"""What it is worth to see that a criterion fails, but not in which way."""

_NO: Final = r"(?:no|not|without|free (?:of|from)|nor|neither|absence of|lack of|never)"
_FEW: Final = (
    r"(?: (?:any|an?|the|is|are|was|of|significant(?:ly)?|(?:sign|evidence) of|patient|obvious\w*)){0,4}"
)
_WELL: Final = (
    r"(?:adequate(?:ly)?|good|satisfactory|sufficient(?:ly)?|appropriate(?:ly)?|correct(?:ly)?|proper(?:ly)?|fine|ok(?:ay)?"
    r"|optimal(?:ly)?|normal|well|full|deep|right|acceptable|excellent|suffices)"
)
_BADLY: Final = (
    r"(?:inadequate(?:ly)?|poor(?:ly)?|insufficient(?:ly)?|unsatisfactory|suboptimal(?:ly)?|shallow|limited|low|reduced|weak"
    r"|incorrect(?:ly)?|wrong(?:ly)?|bad(?:ly)?|incomplete|improper(?:ly)?)"
)
_VERB: Final = (
    r"(?: (?:is|are|was|were|looks?|appears?|seems?|chosen|also|of|rather|somewhat|very|too|in)){0,3}"
)
_BREATH: Final = (
    r"(?:inspiration|inspiratory (?:effort|depth)|breath(?:ing)?|aeration|lung volumes?|inflation|expansion)"
)
_BEAM: Final = r"(?:exposure|penetration|exposed|penetrated|beam penetration)"
_COVER: Final = r"(?:coverage|field of view|collimation|completeness)"
_TURN: Final = r"(?:rotat(?:ed|ion)|turn(?:ed|ing)|oblique(?:ly)?|obliquity)"
_TO: Final = r"(?: [\w']+){0,4}? (?:to|toward|towards|on)(?: the| the patient's| patient's| his| her| its)?"

_PHRASES: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    # ---- phrases that contain others ----
    (
        "rotation",
        "none",
        (
            rf"{_NO}{_FEW} {_TURN}",
            rf"{_TURN}{_VERB} (?:absent|not (?:seen|present|evident|visible))",
            r"non-?rotated",
        ),
    ),
    (
        "exposure",
        "adequate",
        (r"neither (?:too )?(?:dark|over\w*)(?:,| nor| or) (?:too )?(?:light|bright|under\w*)",),
    ),
    (
        "exposure",
        "adequate",
        (r"neither (?:too )?(?:light|bright|under\w*)(?:,| nor| or) (?:too )?(?:dark|over\w*)",),
    ),
    (
        "exposure",
        "adequate",
        (
            rf"{_NO}{_FEW} (?:over|under)-?(?:exposed|exposure|penetrated)(?: (?:or|nor) (?:over|under)-?\w+)?",
        ),
    ),
    (
        "coverage",
        "complete",
        (r"(?:nothing|not|no)\b[^.;,]{0,60}?\b(?:cut[- ]?off|left out|missing|excluded|clipped|cropped)",),
    ),
    (
        "coverage",
        "cut_off",
        (
            r"not (?:\w+ )?(?:covered|included|complete|shown in full)",
            r"partly included",
            r"incompletely \w+",
        ),
    ),
    ("coverage", "cut_off", (rf"{_NO} (?:complete|full) (?:coverage|inclusion)",)),
    (
        "inspiration",
        "poor",
        (
            r"(?:has|have|had|did|is|was) not (?:been )?(?:breathed?|inspired?|inhaled?|expanded)\b[^.;,]{0,20}",
        ),
    ),
    (
        "inspiration",
        "poor",
        (
            rf"{_BREATH}{_VERB} not {_WELL}",
            rf"not {_WELL} (?:inspired|expanded|inflated|aerated)",
        ),
    ),
    (
        "exposure",
        POOR,
        (
            rf"{_BEAM}{_VERB} not {_WELL}",
            rf"not {_WELL} (?:exposed|penetrated)",
        ),
    ),
    # ---- rotation ----
    (
        "rotation",
        "left",
        (
            rf"{_TURN}{_TO} left",
            rf"left(?:ward)? {_TURN}",
        ),
    ),
    (
        "rotation",
        "right",
        (
            rf"{_TURN}{_TO} right",
            rf"right(?:ward)? {_TURN}",
        ),
    ),
    (
        "rotation",
        "none",
        (
            r"clavicles?\b[^.;]{0,40}?\b(?:symmetric\w*|equidistant|equal distance)",
            r"(?:placed |positioned )?straight",
        ),
    ),
    (
        "rotation",
        "none",
        (
            rf"rotation{_VERB} {_WELL}",
            r"rotation: (?:none|no)",
            r"well[ -]cent(?:red|ered)",
            r"symmetric\w*",
            r"true frontal",
        ),
    ),
    ("rotation", POOR, (_TURN,)),
    # ---- inspiration ----
    (
        "inspiration",
        "poor",
        (
            rf"{_BADLY} (?:depth of |degree of |level of )?{_BREATH}",
            rf"{_BREATH}{_VERB} {_BADLY}",
        ),
    ),
    (
        "inspiration",
        "poor",
        (
            r"high diaphragm",
            r"hypo-?inflat\w*",
            rf"{_BADLY} (?:inspired|expanded|inflated|aerated)",
            r"under-?inflated",
        ),
    ),
    (
        "inspiration",
        "adequate",
        (
            rf"{_WELL} (?:depth of |degree of |level of |deep )?{_BREATH}",
            rf"{_BREATH}{_VERB} {_WELL}",
        ),
    ),
    (
        "inspiration",
        "adequate",
        (
            rf"{_WELL}[ -](?:inspired|expanded|inflated|aerated)",
            r"breathed in deeply",
        ),
    ),
    # ---- exposure ----
    (
        "exposure",
        "over",
        (
            r"over-?(?:exposed|exposure|penetrated|penetration)",
            r"too (?:dark|black)",
            r"penetrated too (?:strong|much)\w*",
        ),
    ),
    (
        "exposure",
        "under",
        (
            r"under-?(?:exposed|exposure|penetrated|penetration)",
            r"too (?:light|bright|white)",
            r"penetrated too weakly",
        ),
    ),
    ("exposure", "over", (rf"{_BEAM}{_VERB} (?:high|higher|strong|much)\b",)),
    ("exposure", "under", (rf"{_BEAM}{_VERB} (?:low|lower|weak|little)\b",)),
    (
        "exposure",
        POOR,
        (
            rf"{_BADLY} {_BEAM}",
            rf"{_BEAM}{_VERB} {_BADLY}",
        ),
    ),
    (
        "exposure",
        "adequate",
        (
            rf"{_WELL} {_BEAM}",
            rf"{_BEAM}{_VERB} {_WELL}",
        ),
    ),
    # ---- coverage ----
    (
        "coverage",
        "cut_off",
        (
            rf"{_BADLY} {_COVER}",
            rf"{_COVER}{_VERB} {_BADLY}",
            r"cut[- ]?(?:s )?off",
            r"cuts? off",
            r"left out",
            r"leaves? out",
        ),
    ),
    (
        "coverage",
        "cut_off",
        (
            r"excluded?",
            r"excludes",
            r"clipped",
            r"cropped",
            r"edge of the image runs through",
            r"missing",
        ),
    ),
    (
        "coverage",
        "complete",
        (
            rf"(?:{_WELL}|complete|full|entire) {_COVER}",
            rf"{_COVER}\b[^.;,]{{0,30}}?\b(?:complete|entire|full|adequate|good)\b",
        ),
    ),
    (
        "coverage",
        "complete",
        (
            r"(?:whole|entire|complete|full) (?:chest|thorax|lungs?)",
            r"shown in full",
            r"(?:all|fully|completely) included",
        ),
    ),
    (
        "coverage",
        "complete",
        (
            r"(?:fully|completely) covered",
            r"(?:apices|angles|lungs|chest) (?:and \w+ \w+ )?(?:is|are) included",
        ),
    ),
)
_COMPILED: Final = tuple(
    (criterion, state, re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)"))
    for criterion, state, phrases in _PHRASES
)
_LIMITED: Final = re.compile(
    r"(?:not|non|sub|in|limited|poor|neither)[ -]?(?:\w+ ){0,2}?"
    r"(?:adequate|diagnostic|good|optimal|acceptable|sufficient)"
    r"|\b(?:caution|limits|limited|poor|missed|reservations?)\b"
)
_ALL_WELL: Final = re.compile(
    r"\b(?:adequate(?:ly)?|good|satisfactory|acceptable|excellent|optimal|sufficient|suffices|diagnostic)\b"
    r"|^\W*(?:fine|ok|okay)\W*$|\bno (?:\w+ )?(?:problems?|limitations?|issues?)\b"
)


def quality_of(text: str) -> dict[str, frozenset[str]]:
    """By criterion, the states that a text tells; "good quality" tells the best of all that it is silent about."""
    left = " ".join(spelled_out(text).lower().replace("\u2019", "'").split())
    found: dict[str, set[str]] = {}
    for criterion, state, pattern in _COMPILED:
        left, times = pattern.subn(" | ", left)
        if times:
            found.setdefault(criterion, set()).add(state)
    for states in found.values():
        if len(states) > 1:
            states.discard(POOR)
    if _ALL_WELL.search(left) and not _LIMITED.search(left):
        for criterion, state in GOOD.items():
            found.setdefault(criterion, {state})
    return {criterion: frozenset(states) for criterion, states in found.items()}


def score_quality(right: Mapping[str, str], said: str) -> float:
    """Share of the criteria that an answer tells rightly, less those that it tells wrongly."""
    told = quality_of(said)
    figure = sum(_worth(state, told[name], GOOD[name]) for name, state in right.items() if name in told)
    return max(figure, 0.0) / len(right)


def _worth(right: str, told: frozenset[str], good: str) -> float:
    if told == {right}:
        return 1.0
    return _HALF if told == {POOR} and right != good else -1.0
