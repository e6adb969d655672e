"""Faults of trek's wording files, each with its file, place and text; used by the tests, not on every import.

What a language must have, and which slots each pool may use, stands in `shape`; here are the checks of single texts
(slots, typos, doubled words, punctuation) and of pools (repeats, openings). How phrases are joined is code's business
and stands in `grammar.yaml`, which is only parsed here.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources.abc import Traversable
from itertools import combinations
from string import Formatter
from typing import Any, Final

import yaml

from carina.studies.vocabulary import DEVICES, FINDINGS
from carina.trek.wording import BLANK, GAP
from carina.trek.wording.shape import (
    COMMON,
    COMMON_SENTENCES,
    PHRASES,
    PLACE,
    POOLS,
    SAMPLES,
    SENTENCES,
    VIEWS,
    PoolShape,
    TextShape,
    words,
)

FINISHED: Final = frozenset({"actions", "boxes", "chain", "changes", "findings", "indication", "quote"})
"""Slots whose values include the end of the sentence."""

ENDS: Final = (".", "?", "!", BLANK, '"{phrase}')
"""How a whole text may end, before a closing quotation mark: as a sentence, with a blank, or with a quotation."""

TYPOS: Final = words(
    "accomodate adn abnormalites abnormalty apperance atelectesis begining boxs bounderies cardiomegally "
    "comparision consistant definately descripion diagnosys edeme effussion endotrachael exapmle "
    "explaination fracutre foriegn geniune hemithroax immage inpsiration intepret interprete lenght loacation "
    "locaton modarate nodual occured opacitiy pacemeker pneumothroax pnemonia pneumomia "
    "postion preceed presense priviledge quesiton radiograh radiogaph radiolgist recieve recomend "
    "recommed refered reffer seperate severty supress teh temporarly thier tommorow unchaged untill "
    "wether wich withing writting"
)
"""Common misspellings."""

UNCERTAIN: Final = words("uncertain possibly perhaps equivocal unclear indeterminate questionable")
"""First words of an answer that is neither yes nor no."""

ALIKE: Final = 0.8
"""Share of common words (over all their words) above which two texts of a pool count as the same."""
OPENING: Final = 3
"""Number of words that make an opening."""
SAME_OPENING: Final = 0.2
SOME: Final = 5
"""An opening may occur this often in any pool, and in large pools in up to `SAME_OPENING` of the texts."""

_SLOT: Final = re.compile(r"\{([^{}]*)\}")
_WORD: Final = re.compile(r"[a-z0-9_]+(?:['-][a-z0-9]+)*")
_DOUBLED: Final = re.compile(r"\b([a-z]+)\s+\1\b", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"\b(an? )([a-z]+)")
_SOUNDS_LIKE_CONSONANT: Final = ("uni", "use", "usu", "one", "eu")
_SOUNDS_LIKE_VOWEL: Final = ("hour", "honest")
_VERB: Final = re.compile(
    r"(?:^|[.,:;?!] |\b(?:that|if|whether|when|while|what|as) )"
    r"(?:\{(?:images|reference)\} (?:is|are|was|were|has|have|do|does|shows?|suggests?|supports?)"
    r"|\{(?:list|known|because|devices|possible)\} (?:is|was|has|does|shows|suggests))\b",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(rf"\b(?:{'|'.join(map(re.escape, (*FINDINGS, *DEVICES)))})", re.IGNORECASE)
_VERB_BEFORE: Final = re.compile(r"\b(?:do|does|is|are|was|were) \{(?:images|reference)\}", re.IGNORECASE)


def find_problems(folder: Traversable, names: Collection[str] | None = None) -> Iterator[str]:
    """Every fault of the wording of one language, as "file: place: what is wrong"; nothing where all is well.

    With `names` ("stage-2"), only of these files.
    """
    checks: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
        **{f"stage-{stage}.yaml": partial(_check_stage, stage) for stage in POOLS},
        "common.yaml": _check_common,
        "grammar.yaml": lambda _: iter(()),
    }
    for name, check in checks.items():
        if names is None or name.removesuffix(".yaml") in names:
            yield from (f"{name}: {fault}" for fault in _check_file(folder / name, check))


# ---- files ----------------------------------------------------------------------------------------------------------


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader that rejects duplicate keys, of which plain YAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as PyYAML has it
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} comes twice", key.start_mark
                )
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _check_file(file: Traversable, check: Callable[[dict[str, Any]], Iterator[str]]) -> Iterator[str]:
    if not file.is_file():
        yield "there is no such file"
        return
    text = file.read_text("utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield f"line {number}: ends in a space"
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        yield f"not YAML: {' '.join(str(error).split())}"
        return
    if not isinstance(content, dict):
        yield "must be a mapping"
        return
    yield from check(content)


def _check_stage(stage: int, content: Mapping[str, Any]) -> Iterator[str]:
    families = POOLS[stage]
    yield from _check_keys("", content, [*families, *(["phrases"] if stage in PHRASES else [])])
    for family, variants in families.items():
        found = content.get(family)
        if found is None:
            continue
        if not isinstance(found, dict):
            yield f"{family}: must be a mapping"
            continue
        yield from _check_keys(family, found, variants)
        for variant, asked in variants.items():
            if variant in found:
                yield from _check_pool(f"{family} / {variant}", found[variant], asked)
    if stage in PHRASES and "phrases" in content:
        whole = stage in SENTENCES
        yield from _check_lists("phrases", content["phrases"], PHRASES[stage], whole=lambda _: whole)


def _check_pool(place: str, pool: object, asked: PoolShape) -> Iterator[str]:
    if not isinstance(pool, dict):
        yield f"{place}: must be a mapping"
        return
    yield from _check_keys(place, pool, ["questions", *(["answers"] if asked.answers else [])])
    yield from _check_list(f"{place} / questions", pool.get("questions", []), asked.questions, whole=True)
    if asked.answers:
        yield from _check_blanks(
            f"{place} / questions", pool.get("questions", []), fillable=GAP in asked.answers
        )
    answers = pool.get("answers", {})
    if not isinstance(answers, dict):
        yield f"{place} / answers: must be a mapping"
        return
    if asked.answers and "answers" in pool:
        yield from _check_keys(f"{place} / answers", answers, asked.answers)
    for kind, texts in asked.answers.items():
        if kind not in answers:
            continue
        here = f"{place} / answers / {kind}"
        yield from _check_list(here, answers[kind], texts, whole=kind != GAP, openings=False)
        if " / yes_no" in place:
            yield from _check_labels(here, kind, answers[kind])


def _check_common(content: Mapping[str, Any]) -> Iterator[str]:
    lists = {place.partition(" / ")[0] for place in COMMON}
    yield from _check_keys("", content, [*lists, "names", "image", "quantity", "place"])
    kept = {key: value for key, value in content.items() if key in lists}
    yield from _check_lists(
        "", kept, COMMON, whole=lambda place: place.startswith(COMMON_SENTENCES), openings=False
    )
    yield from _check_names(content.get("names", {}))
    yield from _check_keys("image", content.get("image", {}), VIEWS)
    place = content.get("place", {})
    yield from _check_keys("place", place, PLACE)
    for key, slots in PLACE.items():
        if key in place:
            yield from _check_text(f"place / {key}", place[key], TextShape(1, slots, slots), whole=False)
    for key, word in content.get("quantity", {}).items():
        yield from _check_text(f"quantity / {key}", word, TextShape(1), whole=False)


def _check_names(names: Mapping[str, Any]) -> Iterator[str]:
    for name in (*FINDINGS, *DEVICES):
        if name not in names:
            yield f"names: {name!r} is missing"
    for name, forms in names.items():
        if not isinstance(forms, dict) or not {"a", "the"} <= set(forms) <= {"a", "the", "tip"}:
            yield f'names / {name}: needs "a" and "the", and may have "tip"'
            continue
        if name in DEVICES and "tip" not in forms:
            yield f'names / {name}: a device needs "tip"'
        for form, text in forms.items():
            yield from _check_text(f"names / {name} / {form}", text, TextShape(1), whole=False)
            if form != "a" and isinstance(text, str) and not text.startswith("the "):
                yield f'names / {name} / {form}: must begin with "the": {text!r}'


# ---- lists ----------------------------------------------------------------------------------------------------------


def _check_keys(place: str, found: object, wanted: Sequence[str] | Mapping[str, Any]) -> Iterator[str]:
    prefix = f"{place}: " if place else ""
    if not isinstance(found, dict):
        yield f"{prefix}must be a mapping"
        return
    for key in found:
        if key not in wanted:
            yield f"{prefix}{key!r} is not known here"
    for key in wanted:
        if key not in found:
            yield f"{prefix}{key!r} is missing"


def _check_lists(
    root: str,
    content: object,
    wanted: Mapping[str, TextShape],
    *,
    whole: Callable[[str], bool],
    openings: bool = True,
) -> Iterator[str]:
    """Check nested lists against the expected ones, by place."""
    found = dict(_flatten(content, ""))
    prefix = f"{root} / " if root else ""
    for place in found:
        if place not in wanted:
            yield f"{prefix}{place}: is not known here"
    for place, texts in wanted.items():
        if place not in found:
            yield f"{prefix}{place}: is missing"
            continue
        yield from _check_list(f"{prefix}{place}", found[place], texts, whole=whole(place), openings=openings)


def _flatten(content: object, place: str) -> Iterator[tuple[str, object]]:
    if not isinstance(content, dict):
        yield place, content
        return
    for key, value in content.items():
        yield from _flatten(value, f"{place} / {key}" if place else str(key))


def _check_list(
    place: str, found: object, texts: TextShape, *, whole: bool, openings: bool = True
) -> Iterator[str]:
    if not isinstance(found, list):
        yield f"{place}: must be a list"
        return
    if len(found) < texts.least:
        yield f"{place}: has {len(found)} texts, needs {texts.least}"
    for number, text in enumerate(found, 1):
        yield from _check_text(f"{place} / {number}", text, texts, whole=whole)
        # What a wording says by itself would stand in a conversation whatever the study holds.
        if named := _NAMED.search(str(text)):
            yield f"{place} / {number}: names {named[0]!r} by itself: {text!r}"
    said = [text for text in found if isinstance(text, str)]
    yield from _find_repeats(place, said)
    if openings and whole:
        yield from _find_openings(place, said)


def _check_blanks(place: str, found: object, *, fillable: bool) -> Iterator[str]:
    """A question may have one blank at most, and only where there are answers that fit into it."""
    for number, text in enumerate(found if isinstance(found, list) else [], 1):
        blanks = str(text).count(BLANK)
        if blanks > 1:
            yield f"{place} / {number}: has {blanks} blanks: {text!r}"
        elif blanks and not fillable:
            yield f"{place} / {number}: has a blank, and no answer here fits into one: {text!r}"


def _check_labels(place: str, label: str, found: object) -> Iterator[str]:
    for number, text in enumerate(found if isinstance(found, list) else [], 1):
        first = next(iter(_WORD.findall(str(text).lower())), "")
        if not (first in UNCERTAIN if label == "uncertain" else first == label):
            yield f"{place} / {number}: does not begin as an answer {label!r} should: {text!r}"


def _find_repeats(place: str, texts: Sequence[str]) -> Iterator[str]:
    """Texts of one list that are the same, or the same except for a word or two."""
    bags = [_count_words(text) for text in texts]
    for (i, one), (j, other) in combinations(enumerate(bags), 2):
        both = len(one & other)
        if both and both >= ALIKE * (len(one) + len(other) - both):
            how = "is" if one == other else "is nearly"
            yield f"{place} / {j + 1}: {how} the same as {i + 1}: {texts[j]!r}"


def _count_words(text: str) -> frozenset[tuple[str, int]]:
    """Words with their count so far, so that sets take repeated words into account."""
    seen: Counter[str] = Counter()
    bag = set()
    for word in _WORD.findall(text.lower()):
        seen[word] += 1
        bag.add((word, seen[word]))
    return frozenset(bag)


def _find_openings(place: str, texts: Sequence[str]) -> Iterator[str]:
    most = max(SOME, int(SAME_OPENING * len(texts)))
    counts = Counter(" ".join(text.lower().split()[:OPENING]) for text in texts)
    for opening, count in counts.items():
        if count > most:
            yield f"{place}: {count} of {len(texts)} texts begin with {opening!r}"


# ---- single texts ---------------------------------------------------------------------------------------------------


def _check_text(place: str, text: object, texts: TextShape, *, whole: bool) -> Iterator[str]:
    if not isinstance(text, str):
        yield f"{place}: is {text!r} and not a text; put it in quotes"
        return
    for fault in (*_check_form(text, whole=whole), *_check_filled(text, texts)):
        yield f"{place}: {fault}: {text!r}"


def _check_form(text: str, *, whole: bool) -> Iterator[str]:
    if not text.strip():
        yield "is empty"
        return
    if text != " ".join(text.split()):
        yield "has spaces at an end or doubled"
    if typos := TYPOS & set(_WORD.findall(text.lower())):
        yield f"has the typo {min(typos)!r}"
    if verb := _VERB.search(text) or _VERB_BEFORE.search(text):
        yield f"hangs a verb on a slot that may be one or several ({verb[0]!r})"
    if whole:
        last = _SLOT.findall(text)[-1:] if text.endswith("}") else []
        if not set(last) & FINISHED and not text.rstrip("\"'").endswith(ENDS):
            yield "does not end as a sentence should"
        if text[0].islower():
            yield "does not begin with a capital"
    elif text.endswith((".", "?", "!")):
        yield "ends as a sentence, but is part of one"


def _check_filled(text: str, texts: TextShape) -> Iterator[str]:
    bare = _SLOT.sub("", text)
    if "{" in bare or "}" in bare:
        yield "has braces that do not pair"
        return
    used = frozenset(_SLOT.findall(text))
    for slot in sorted(used - texts.slots):
        yield f"uses the slot {slot!r}, which is not given here"
    for slot in sorted(texts.needs - used):
        yield f"does not use the slot {slot!r}"
    try:
        filled = Formatter().vformat(text, (), SAMPLES)
    except (KeyError, ValueError, IndexError):
        yield "cannot be filled"
        return
    if doubled := _DOUBLED.search(filled):
        yield f"has the doubled word {doubled[0]!r}"
    for article, word in _ARTICLE.findall(filled):
        if article == "a " and word == "a":
            continue
        vowel = word.startswith(_SOUNDS_LIKE_VOWEL) or (
            word[0] in "aeiou" and not word.startswith(_SOUNDS_LIKE_CONSONANT)
        )
        if vowel != (article == "an "):
            yield f"has the wrong article in {article + word!r}"
