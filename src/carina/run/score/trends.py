"""The course of one finding in the words of an answer: new, worse, improved, unchanged or resolved.

Phrases are taken out of the text one after the other, what contains other phrases first ("neither better nor worse",
"not merely less marked"), so that each word counts once. An answer that tells two courses tells none.
"""

import re
from typing import Final

_MARKED: Final = (
    r"(?:marked|pronounced|conspicuous|extensive|prominent|severe|dense|apparent|evident|advanced|confluent)"
)
_WORSE: Final = r"(?:wors(?:e|en\w*)|increas\w*|progress\w*|enlarg\w*|deteriorat\w*|larger|bigger|greater)"
_BETTER: Final = r"(?:better|improv\w*|decreas\w*|regress\w*|reced\w*|diminish\w*|smaller|reduc\w*)"
_CHANGE: Final = rf"(?:{_WORSE}|{_BETTER}|resol\w+|disappear\w*|vanish\w*|gone|new\w*)"
_WHOLLY: Final = r"(?:complete(?:ly)?|entire(?:ly)?|full(?:y)?|total(?:ly)?)"
_NEARLY: Final = (
    rf"(?:(?:almost|near(?:ly)?|largely|mostly)(?: {_WHOLLY})?|incomplete(?:ly)?|not(?: yet)? {_WHOLLY})"
)
_SEEN: Final = r"(?:seen|present|visible|there|identified|known|in place)"
_BEFORE: Final = r"(?:earlier|prior|previous)"
_NONE: Final = ""
"""Of phrases that tell no course, and hide the words within them."""

_PHRASES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    # ---- phrases that contain others ----
    (_NONE, (r"enlarge(?:d|ment)(?: of)?(?: the)? (?:cardiac|cardiomediastinal|heart|mediastin\w*|hil\w*)",)),
    (
        "unchanged",
        (
            r"neither \w+(?: \w+){0,2} nor \w+",
            rf"(?:no|not|without)(?: \w+){{0,3}} {_WORSE} (?:or|nor) (?:\w+ )?{_BETTER}",
            rf"(?:no|not|without)(?: \w+){{0,3}} {_BETTER} (?:or|nor) (?:\w+ )?{_WORSE}",
            rf"(?:not|cannot) (?:call|be called) [^.;]{{0,80}}?\b{_BETTER} (?:or|nor) {_WORSE}",
        ),
    ),
    (
        _NONE,
        (
            r"not expect [^.;]{0,80}? to be \w+(?: \w+){0,4}, but",
            rf"(?:not|rather than|and not) (?:merely|only|just|simply) (?:less |more )?(?:{_MARKED}|{_CHANGE})",
            r"without (?:being|having) \w+",
        ),
    ),
    (
        "unchanged",
        (
            r"(?:no|without|not any|lack of) (?:\w+ ){0,3}(?:changes?|differences?|movement)",
            r"(?:not|never|cannot|hardly)(?: \w+){0,2} (?:chang\w+|alter\w+|differ\w*|moved?|movement)",
            r"unlikely to (?:change|(?:be )?moved?|differ)",
        ),
    ),
    (
        "new",
        (
            rf"not (?:yet )?{_SEEN}(?: \w+){{0,2}} (?:before|previously|{_BEFORE})",
            rf"not (?:\w+ )?{_SEEN} (?:on|in|at) (?:the |a )?{_BEFORE}",
            r"(?:nothing|none)(?: of (?:this|the) kind)? (?:was (?:in place )?)?(?:before|previously)",
            r"there was (?:none|nothing)\b[^.;]{0,20}\bbefore",
            rf"{_BEFORE}(?: \w+)? (?:lacks|does not show|did not show|shows no sign of)",
            rf"seen now but not|no (?:{_BEFORE} )?counterpart|then, nothing",
            r"(?:found|seen|visible) on the current (?:\w+) only",
        ),
    ),
    (
        "improved",
        (
            rf"{_NEARLY}(?: interval)? (?:resol\w+|clear\w*|regress\w*|disappear\w*|gone|vanish\w*)",
            rf"not (?:yet )?(?:resolved|cleared|disappeared) {_WHOLLY}",
        ),
    ),
    (
        "resolved",
        (
            r"no longer|not (?:be )?\w+ any ?more",
            r"nothing (?:of it is )?left|left nothing|now, nothing",
            r"no (?:residual|remaining|trace)",
            rf"(?:found|seen|visible) on the {_BEFORE} \w+ only",
            rf"not (?:\w+ )?{_SEEN} (?:on|in|at) (?:the )?(?:current|present)",
            r"unlikely to be (?:found|seen|visible|present)|not expect to (?:see|find)",
            r"complete(?:ly)? (?:interval )?(?:resol\w+|regress\w*|clear\w*|disappear\w*)",
            r"(?:resolved|cleared) completely",
        ),
    ),
    (
        _NONE,
        (
            r"(?:no|not|never|without|nor)"
            r"(?: (?:an?|any|been|yet|interval|signs?|evidence|of|significant(?:ly)?|clear(?:ly)?|show\w*|demonstrate"
            r"|see|seen|further|definite(?:ly)?|appreciabl[ey]|become|got(?:ten)?)){0,4}"
            rf" {_CHANGE}",
        ),
    ),
    # ---- devices, which are placed and removed ----
    ("worse", (r"was better placed|lost the better position",)),
    ("improved", (r"was less well placed",)),
    ("worse", (r"(?:less|not as) well(?: placed)?", r"poorer position|wrong direction")),
    ("improved", (r"right direction",)),
    ("resolved", (r"removed|removal|taken out|withdrawn|explanted", r"chest without it")),
    ("new", (r"(?:been|was|newly|be) (?:placed|inserted|put in|added)",)),
    # ---- courses in plain words ----
    (
        "worse",
        (
            rf"(?:more|further) {_MARKED}|denser|(?:more of|stands out more)",
            r"less favou?rable|unfavou?rable|stronger words",
        ),
    ),
    (
        "improved",
        (
            rf"less {_MARKED}|less of it|stands out less",
            r"(?:more )?favou?rable|milder words",
            r"(?:partial(?:ly)?|partly) (?:resol\w+|clear\w*|regress\w*)|resolving|clearing",
        ),
    ),
    ("worse", (_WORSE, r"gains? in|grow(?:n|ing|s|th)?")),
    ("improved", (_BETTER, r"loses? in|shrunk\w*|shrink\w*")),
    (
        "resolved",
        (
            r"resol(?:ved?|ves|ution)|disappear\w*|vanish\w*|gone|cleared",
            r"(?:drops?|way) out of the picture|absent now|is absent|show none of it",
        ),
    ),
    (
        "unchanged",
        (
            r"unchanged|unaltered|stable|stability|steady|uneventful|persist\w*|similar",
            r"(?:is|are|be|looks?|remain(?:s|ed)?|appears?|stays?|much|probably) the same"
            r"(?! (?:place|region|site|order))",
            r"the same (?:picture|state|appearance|as|now|way|words)|comes to the same|looks? alike",
            r"(?:about|roughly|essentially|more or less) the same|same as|as (?:before|previously)",
            rf"as on the {_BEFORE}",
            r"as it (?:is|was)|where it (?:is|was)|in either direction",
            r"(?:remains?|stays?|stayed|stay|still) (?:in place|what it is)",
            r"keep its present|kept its earlier|as much of it as now",
        ),
    ),
    (
        "new",
        (
            r"new(?! (?:position|place))|newly|de novo|anew|first time",
            r"ha(?:s|ve) (?:since )?(?:developed|appeared|arisen|come up)|developed in the interval",
            r"(?:likely|expected) to (?:appear|develop|come up|bring)|appearance of an?",
            rf"addition to the {_BEFORE}",
        ),
    ),
)
_COMPILED: Final = tuple(
    (course, re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)")) for course, phrases in _PHRASES
)


def trend_of(text: str) -> str | None:
    """The one course that a text tells; None where it tells none, or more than one."""
    left = " ".join(text.lower().replace("\u2019", "'").replace("n't", " not").split())
    found: set[str] = set()
    for course, pattern in _COMPILED:
        left, times = pattern.subn(" | ", left)
        if times and course:
            found.add(course)
    return found.pop() if len(found) == 1 else None
