"""Options that a sentence judges or concludes with: "Therefore: No", "the 3rd mask is best", "no point needs it"."""

import re
from functools import lru_cache
from typing import Final

from carina.runs.parse.choices import Choices, split_tokens, word_set
from carina.runs.parse.expression import Expression, read_expression
from carina.runs.parse.natural import comparable_words, find_named_option, own_words
from carina.runs.parse.normalise import normalise_text

_LONGEST: Final = 4000
"""Most characters of a reply whose sentences are read; of a longer one, the last."""
_CONCLUSION: Final = re.compile(
    r"(?:^|(?<=[.!?\n;])|(?<=[.!?\n;]\s))\s?(?:and |so )?(?:so|therefore|thus|hence|overall|consequently|accordingly"
    r"|in (?:conclusion|summary|short)|to (?:conclude|sum up|summari[sz]e)|finally|ultimately|all in all)\b"
    r"\s?(?P<sign>[,:-])?\s?(?:(?:it is|it's|it must be|this is|i say|we get|that leaves|the best (?:fit|match) is)\s)?"
)
_END: Final = re.compile(r"[!?;\n]|\.(?!\d)(?!\s?(?:and|&)\b)")
_SENTENCE: Final = re.compile(r"[.!?;\n](?!\d)\s*")
_CLAUSE: Final = re.compile(
    r"\s*[,;:]\s*|\s+-+\s+|\s(?:because|since|although|though|whereas|while|but|and|so|as it|as they)\s"
)
_ASIDE: Final = re.compile(
    r"(?:(?:i (?:think|believe|would say|find|feel)|in my (?:view|opinion|judge?ment)|therefore|thus|hence|so|overall"
    r"|clearly|that|the|here|to me)\s)+"
)
_LIKE: Final = (
    r"(?:(?:clearly|therefore|thus|by far|still|also|indeed|obviously|overall|the|a|an|my|our|one)\s){0,4}"
)
_JUDGED: Final = re.compile(
    r"\s(?:(?:is|are|was|seems(?: to be)?|appears(?: to be)?|looks|would be|should be|must be|remains|provides|gives"
    rf"|offers|has)\s{_LIKE}(?:(?P<strong>best|correct|closest|optimal|ideal|preferred|preferable|accurate|winner"
    r"|(?:most|more) (?:accurate|appropriate|likely|suitable|plausible|precise|fitting|complete|faithful|consistent"
    r"|correct)"
    r"|right(?= (?:one|option|answer|choice|mask|point|contour)\b|\W*$)|(?:my|our) (?:choice|pick|answer|selection)"
    r"|choice|answer|(?:that|which) (?:best|most closely|most accurately))|(?P<weak>better|superior))\b"
    r"|(?P<passive>(?:should|must|would|has to|is to) be (?:selected|chosen|picked|preferred|used))\b"
    r"|(?P<verb>(?:fits?|match(?:es)?|corresponds?|agrees?|aligns?|outlines?|covers?|follows?|captures?|works?)\b"
    r"(?: \w+){0,8}? (?:best|most closely|most accurately|perfectly)"
    r"|(?:best|most closely|most accurately) (?:fits?|match(?:es)?|corresponds?|agrees?|aligns?|outlines?|represents?"
    r"|describes?|delineates?|covers?|follows?|captures?|reflects?))\b)(?P<rest>.*)$",
    re.DOTALL,
)
_WORD: Final = re.compile(r"[a-z]+")
_CONCLUDING: Final = word_set(
    "so therefore thus hence overall consequently accordingly conclusion summary short conclude sum summarise "
    "summarize finally ultimately all"
)
_JUDGING: Final = word_set(
    "best correct closest optimal ideal preferred preferable accurate winner most more choice pick answer "
    "selection better superior perfectly selected chosen picked preferred used"
)
"""Words without which nothing is judged; looking for them is faster than the patterns."""
_RIGHT: Final = re.compile(r"right (?:one|option|answer|choice|mask|point|contour)\b|right\W*$")
_ALONE: Final = re.compile(
    r"[\s\"')]*(?:$|(?:one|fit|match|mask|option|choice|answer|contour|outline|representation|delineation|segmentation"
    r"|candidate|diagnosis|finding|of|among|here|overall|in (?:this|my)|given|than|way|follows|matches|fits|represents"
    r"|describes|captures|covers)\b)"
)
"""What may follow "best" or "correct"; a mask that is "best described as small" is not the best one."""
_CONDITION: Final = re.compile(r"\b(?:if|unless|whether|or|otherwise|but for)\b")
_HEDGED: Final = re.compile(r"\b(?:might|could|may|perhaps|maybe|possibly|would have been)\b")
_AMBIGUOUS: Final = Expression("ambiguous", frozenset(), is_open=False)

_SHORT: Final = 300
_STATED: Final = re.compile(
    r"([^.!?\n]+?)\s(?:(?:is|are)\s(?:(?:clearly|both|all|also|definitely)\s)?(?:present|visible|seen|correct|right|true|applicable|shown|needed|required"
    r"|affected|involved)|apply|applies|fit|fits|needs? (?:expansion|contraction|to be \w+))\W*"
)
_NONE: Final = re.compile(
    r"\W*(?:(?:i|we) (?:see|find|would (?:choose|select|mark|change)|choose|select|mark) )?"
    r"(?:(?P<none>none|neither|not one|not any)(?: of (?:(?:the|these|them|those|this|its)(?: \w+){0,2}?|options))?"
    r"|no (?P<noun>\w+)(?: \w+){0,2}?|nothing(?: \w+){0,3}?|there is (?:no|nothing)(?: \w+){0,3}?)"
    r"(?:\s(?:needs?|requires?|must|should|has to|have to|is|are|appl(?:y|ies)|fits?|match(?:es)?|to|show|shows"
    r"|lies?|qualif(?:y|ies)|seems?|appears?|needed|required|necessary|warranted|indicated|hold|holds|contains?"
    r"|correct|visible|present|of (?:the|these|them))\b.*)?\W*",
    re.DOTALL,
)
_BREAK: Final = re.compile(r",|\s-+\s")
_ALL_OPTIONS: Final = re.compile(r"\boptions?\s?\(?\d{1,2}\s?(?:-|to|through)\s?\d{1,2}\)?")
_EXCEPT: Final = word_set(
    "but except excluding however other than apart besides perhaps maybe might could if may possibly unsure uncertain "
    "wrong incorrect excluded unaffected adequate acceptable fine unless yet sure clear certain determine"
)
_NEEDED: Final = word_set("need needs needed require requires required necessary warranted indicated")
_OFFERED: Final = word_set(
    "point points region regions option options statement statements finding findings choice choices answer answers "
    "item items area areas mask masks device devices zone zones above these those them list"
)
"""Words for the options, of which none is said to be right."""
_GENERIC: Final = word_set(
    "none neither nothing these those them this that they there is are the any such given listed shown option options "
    "point points region regions area areas mask masks statement statements finding findings answer answers choice "
    "choices item items device devices need needs needed require requires required necessary must should have apply "
    "applies fit fits match matches correct right visible present seen applicable appropriate suitable further be at "
    "all above anywhere here of to choose select mark would identified detected warranted indicated what so were been "
    "more than with from image xray x-ray chest marked candidate candidates offered possible i case list"
)
_CONTENT: Final = re.compile(r"[a-z]{4,}")
_STEM: Final = 5
"""First letters in which "expansion" equals "expanded"."""
_THAN: Final = re.compile(r"\sthan\s(?P<other>[^.!?\n]{1,80}?)\W*$")
_SAME_IN_ALL: Final = word_set("lung lungs side than more which than with that this")
_AFFECTED: Final = word_set("affec invol exten sever worse disea opaci opaqu abnor dense conso great")
"""Beginnings of words for how much is affected."""


def find_in_sentences(words: str, options: Choices) -> Expression | None:
    """The options that the sentences of a reply judge to be right; None if there are none.

    Args:
        words: A normalised text without marker and without the form of an answer.
        options: The options of the step.
    """
    words = words[-_LONGEST:]
    held = _WORD.findall(words)
    return (
        (None if _CONCLUDING.isdisjoint(held) else _find_conclusion(words, options))
        or (
            None
            if _JUDGING.isdisjoint(held) and not ("right" in held and _RIGHT.search(words))
            else _find_judged(words, options)
        )
        or _find_none(words, options)
        or _find_stated(words, options)
        or (_find_comparison(words, options) if "than" in held else None)
    )


def _find_conclusion(words: str, options: Choices) -> Expression | None:
    """The expression in the last sentence that begins with "therefore" or the like."""
    last = None
    for found in _CONCLUSION.finditer(words):
        last = found
    if last is None:
        return None
    tail = words[last.end() :]
    end = _END.search(tail)
    sentence = tail if end is None else tail[: end.start()]
    return read_expression(split_tokens(sentence), options, strict=True)


def _find_judged(words: str, options: Choices) -> Expression | None:
    """The only option that is said to be the best or correct one; ambiguous if these are several."""
    if options.multiple:
        return None
    strong: set[int] = set()
    weak: set[int] = set()
    for sentence in _SENTENCE.split(words):
        if _CONDITION.search(sentence):
            continue
        for clause in _CLAUSE.split(sentence):
            judged = _JUDGED.search(clause) if not _HEDGED.search(clause) else None
            if judged is None or (
                judged["passive"] is None and judged["verb"] is None and not _ALONE.match(judged["rest"])
            ):
                continue
            subject = clause[: judged.start()]
            aside = _ASIDE.match(f"{subject} ")
            subject = subject if aside is None else subject[aside.end() :]
            item = read_expression(split_tokens(subject), options, strict=True)
            if item is None or item.status != "ok":
                continue
            if judged["weak"]:
                # "Option 1 is better" chooses it, "the right lung is better" may not.
                is_numbered = any(sign.isdigit() for sign in "".join(split_tokens(subject)))
                if is_numbered and (" than " not in judged["rest"] or options.number == 2):
                    weak |= item.places
            else:
                strong |= item.places
    chosen = strong or weak
    if not chosen:
        return None
    return _AMBIGUOUS if len(chosen) > 1 else Expression("ok", frozenset(chosen), is_open=False)


def _find_none(words: str, options: Choices) -> Expression | None:
    """The option "none", if the first sentence denies all others and nothing in the reply names one of them."""
    if options.none is None:
        return None
    words = _ALL_OPTIONS.sub("options", words.strip())
    first = _BREAK.split(_SENTENCE.split(words, maxsplit=1)[0], maxsplit=1)[0]
    if not _denies_options(first, options.question):
        return None
    others = [held for n, held in enumerate(own_words(options.texts, options.none)) if n != options.none]
    mentioned = comparable_words(words)
    if any(held and held <= mentioned for held in others) or any(word[0].isdigit() for word in mentioned):
        return None
    return Expression("ok", frozenset((options.none,)), is_open=False)


def _denies_options(sentence: str, question: str) -> bool:
    """Whether a sentence says that none of the options, or nothing of what the question is about, is right."""
    found = _NONE.fullmatch(sentence)
    said = set(split_tokens(sentence))
    if found is None or not _EXCEPT.isdisjoint(said):
        return False
    is_bare = found["none"] is not None
    if _NEEDED.isdisjoint(said) and _OFFERED.isdisjoint(said) and (" of " in sentence or not is_bare):
        return False
    asked = _question_stems(question)
    about = {word[:_STEM] for word in _CONTENT.findall(sentence) if word not in _GENERIC}
    return about <= asked if asked else is_bare or bool(about)


def _find_stated(words: str, options: Choices) -> Expression | None:
    """The options that the only sentence of a reply says to be right: "Both A and B are present."."""
    found = _STATED.fullmatch(words.strip()) if options.multiple and len(words) <= _SHORT else None
    return None if found is None else read_expression(split_tokens(found[1]), options, strict=True)


def _find_comparison(words: str, options: Choices) -> Expression | None:
    """The option that a sentence says to be more than the others: "The left lung is more affected than the right."."""
    found = _THAN.search(words.strip()) if len(words) <= _LONGEST else None
    if found is None or options.multiple:
        return None
    statement = words.strip()[: found.start()]
    number = find_named_option(statement, options)
    if number is None:
        return None
    own = own_words(options.texts, options.none)
    if len(own[number]) == 1 and not _is_asked_about(statement, options):
        return None
    other = comparable_words(found["other"]) - {"other", "one"}
    if (
        not other
        or other & own[number]
        or not other <= frozenset().union(*own, comparable_words(options.texts[number]))
    ):
        return None
    return Expression("ok", frozenset((number,)), is_open=False)


def _is_asked_about(statement: str, options: Choices) -> bool:
    """Whether a comparison is the one that the question asks about: a lung may be larger and not more affected."""
    compared = {word[:_STEM] for word in _CONTENT.findall(statement)} - _SAME_IN_ALL
    asked = _question_stems(f"{options.question}\n") | {
        word[:_STEM] for text in options.texts for word in _CONTENT.findall(text)
    }
    named = {word[:_STEM] for held in own_words(options.texts, options.none) for word in held}
    return bool(compared & (asked - named)) or bool(compared & _AFFECTED and asked & _AFFECTED)


@lru_cache(maxsize=4096)
def _question_stems(question: str) -> frozenset[str]:
    """The beginnings of the words of a question, without its options."""
    words = normalise_text(question.partition("\nOptions:")[0])
    return frozenset(word[:_STEM] for word in _CONTENT.findall(words)) - {"which"}
