"""An answer expression: numbers, letters and option texts, joined, excluded, or offered as alternatives."""

from typing import Final, NamedTuple

from carina.runs.parse.choices import ARTICLES, Choices, is_word, word_set
from carina.runs.records import Status

_MANY: Final = 10**6

_NOUNS: Final = word_set(
    "option options choice choices answer answers number numbers mask masks point points region regions "
    "statement statements image images item items label letter candidate colour color coloured colored "
    "panel picture alternative response finding findings contour contours segmentation overlay dot dots "
    "marker markers"
)
_LEADS: Final = _NOUNS | {"only", "just", "both", "either", "following"}
"""Words that may stand before an item without changing it."""
_LINKS: Final = word_set(
    "is are was were be would will should must it its it's that's this these those most likely probably "
    "clearly definitely simply therefore thus then so to of as follows correct best for with go my"
)
"""Words that may link a marker with its answer."""
_CLAUSES: Final = word_set(
    "because since as due given based which where while with for so is are was were has have appears "
    "appear seems fits shows covers that there it this these i we though although best most matches "
    "corresponds represents after considering clearly here"
)
"""Words that begin what is said about an answer."""
_JUDGED: Final = word_set("is are was were has have appears appear seems")
_DENIED: Final = word_set("wrong incorrect not false excluded unlikely isn't aren't ruled")
_AND: Final = frozenset((",", ";", "and", "&", "+", "plus"))
_OR: Final = frozenset(("or", "/", "vs", "versus"))
_NOT: Final = word_set("not except excluding without nor neither minus excepting rather instead isn't")
_TO: Final = frozenset(("-", "to", "through", "thru", "until", "~"))
_ALONE: Final = frozenset(("only", "alone", "exclusively"))
_HEDGES: Final = frozenset(("maybe", "possibly", "perhaps", "probably", "even"))
_ORDINAL: Final = frozenset(("st", "nd", "rd", "th"))
_OPEN: Final = frozenset("([{")
_CLOSE: Final = frozenset(")]}")
_QUOTES: Final = frozenset("\"'#|\x01")
_SIGNS: Final = frozenset("\"'#|\x01([{:-=>.+*")
"""Signs that may stand before the first item of a line."""
_NEUTRAL: Final = frozenset("\"'#|\x01([{:-=>")
_ALL: Final = frozenset(("all", "everything", "every", "each"))
_OF_ALL: Final = _NOUNS | {"of", "the", "above", "them", "these", "those", "listed", "given", "shown", "here"}
_NOTHING: Final = frozenset(("none", "neither", "nothing"))
_GO_ON: Final = _AND | _OR | _NOT | _NOUNS
"""Words that may follow the text of an option within an expression."""


class Read(NamedTuple):
    """What an expression says."""

    status: Status
    chosen: frozenset[int]
    """Options by place, from 0."""
    open: bool
    """Whether it ends with a joiner, so that something is still to come."""
    whole: bool = False
    """Whether the line ends with its last item, outside of all brackets: nothing is left that was not read."""


class _Item(NamedTuple):
    places: tuple[int, ...]
    end: int
    kind: str
    """n: number, o: ordinal, l: letter, t: text, a: all, x: a number that no option has."""


def read(said: list[str], options: Choices, *, strict: bool) -> Read | None:
    """The expression with which a line begins, or None.

    `strict` allows nothing but the expression (and remarks in brackets); else a clause about the answer may follow.
    """
    return _Reader(said, options, strict=strict).read()


class _Reader:
    """One pass over the tokens of a line."""

    __slots__ = (
        "at",
        "comma",
        "conflict",
        "denied",
        "deny",
        "depth",
        "either",
        "last",
        "options",
        "out",
        "said",
        "size",
        "strict",
        "taken",
        "unclosed",
    )

    def __init__(self, said: list[str], options: Choices, *, strict: bool) -> None:
        self.said = said
        self.size = len(said)
        self.options = options
        self.strict = strict
        self.at = self.depth = 0
        self.taken: set[int] = set()
        self.denied: set[int] = set()
        self.deny = ""
        self.comma = self.either = self.conflict = self.out = self.unclosed = False
        self.last: _Item | None = None

    # ---- the line ---------------------------------------------------------------------------------------------------

    def read(self) -> Read | None:
        expecting = True
        while self.at < self.size:
            if expecting:
                step = self._before_item()
                if step is None:
                    return None
                if step == "end":
                    break
                expecting = step != "item"
            else:
                after = self._after_item()
                if after is None:
                    return None
                if after == "end":
                    break
                expecting = after == "next"
        if self.last is None or not (self.taken or self.out):
            return None
        ended = self.at >= self.size
        whole = ended and not (expecting or self.depth or self.unclosed)
        return self._resolved(unfinished=expecting and ended, whole=whole)

    def _resolved(self, *, unfinished: bool, whole: bool) -> Read:
        chosen = frozenset(self.taken - self.denied)
        status: Status = "ok"
        if self.out:
            status = "out_of_range"
        elif (
            self.conflict
            or not chosen
            or (self.either and len(self.taken) > 1)
            or (self.options.none in chosen and len(chosen) > 1)
        ):
            status = "ambiguous"
        elif len(chosen) > 1 and not self.options.multiple:
            status = "too_many"
        return Read(status, chosen, unfinished, whole)

    # ---- where an item must come ------------------------------------------------------------------------------------

    def _before_item(self) -> str | None:
        word = self.said[self.at]
        item = self._item(self.at)
        if item is not None:
            self._take(item)
            return "item"
        if word in _OPEN:
            self.depth += 1
        elif word in _NOT:
            self.deny = word
        elif word == "but":
            self.deny = ""
        elif word in _OR and self.last is not None:
            self.either = self.either or not self.deny
        elif not (
            word in _NEUTRAL
            or word in ARTICLES
            or word in _LEADS
            or word in _AND
            or word == "than"
            or (self.last is None and word in _LINKS and not self.strict)
            or (self.deny and word == "of")
            or (self.either and word in _HEDGES)
        ):
            return self._no_item()
        self.at += 1
        return "skip"

    def _no_item(self) -> str | None:
        """What stands where an item should: an explanation after a comma, or no expression at all."""
        if self.last is None:
            return None
        word = self.said[self.at]
        # "1, 3 ribs are covered": one cannot tell where the answer ends.
        if word[0].isdigit() and not self.depth:
            return None
        if self.depth and self.comma:
            self._leave_bracket()
            return "skip" if self.at < self.size else "end"
        if not is_word(word) and self.at == self.size - 1:
            return "end"
        if not self.strict and (self.comma or self.last.kind == "t"):
            return "end"
        return None

    # ---- after an item ----------------------------------------------------------------------------------------------

    def _after_item(self) -> str | None:  # noqa: PLR0911, PLR0912 - one branch for each kind of word
        said, at = self.said, self.at
        word = said[at]
        last = self.last
        assert last is not None  # noqa: S101 - only called after an item
        if word in _CLOSE:
            self.depth = max(0, self.depth - 1)
            self.at += 1
            return "same"
        if word in _QUOTES:
            self.at += 1
            return "same"
        if word in _OPEN:
            return self._bracket()
        if word in _TO and last.kind in "nol" and self._range():
            return "same"
        if word in _AND:
            self.comma = word in ",;"
            self.at += 1
            return "next"
        if word in _OR:
            # "not 1 or 2" denies both.
            self.either = self.either or not self.deny
            self.comma = False
            self.at += 1
            return "next"
        if word in _NOT or (word == "but" and (last.kind == "a" or self.deny or self._word(at + 1) in _NOT)):
            self.deny = "" if word == "but" and self.deny else word
            self.comma = False
            self.at += 1
            return "next"
        if word in _ALONE or (word in _NOUNS and last.kind in "toa"):
            self.at += 1
            return "same"
        if self._agreed(at if is_word(word) else at + 1, signed=not is_word(word)):
            return "same"
        if not is_word(word):
            return self._end_of_sentence(word)
        if self.depth:
            self._leave_bracket()
            return "same" if self.at < self.size else "end"
        if self.strict:
            return None
        if word in _CLAUSES:
            denied = word in _JUDGED and any(w in _DENIED for w in said[at : at + 6])
            return None if denied else "end"
        return "end" if last.kind == "t" and last.places[0] in self.options.short else None

    def _end_of_sentence(self, word: str) -> str | None:
        if self.depth:
            self._leave_bracket()
            return "same" if self.at < self.size else "end"
        if word == "%":
            return None
        if not self.strict:
            return "end"
        rest = self.said[self.at + 1 :]
        return None if any(is_word(w) for w in rest) else "end"

    def _bracket(self) -> str | None:
        """A bracket after an item names the same option in other words, goes on with the list, or is a remark."""
        at = self.at + 1
        word = self._word(at)
        self.depth += 1
        if word in _AND or word in _OR or word in _NOT:
            self.at = at
            return "same"
        if self._agreed(at, signed=True):
            return "same"
        self._leave_bracket()
        return "same" if self.at < self.size else "end"

    def _leave_bracket(self) -> None:
        said, at = self.said, self.at
        depth = self.depth
        start = at
        while at < self.size and depth:
            word = said[at]
            if word in _OPEN and at > start:
                depth += 1
            elif word in _CLOSE:
                depth -= 1
            at += 1
        self.at, self.depth = at, 0
        self.unclosed = depth > 0

    def _agreed(self, at: int, *, signed: bool) -> bool:
        """Whether the same option is named again, as in "2 (No)", "B. left lung" and "Yes (1)"; a different one is
        a conflict."""
        last = self.last
        assert last is not None  # noqa: S101 - only called after an item
        while at < self.size and (
            self.said[at] in ARTICLES or self.said[at] in _SIGNS or self.said[at] in _LEADS
        ):
            # "2 (mask 2)" names it again; "2. mask 3" is not looked into further than that.
            at += 1
        if at >= self.size:
            return False
        item = self._item(at)
        if item is None or item.kind in "ax" or len(last.places) != 1:
            return False
        if (
            item.kind != "t"
            and not (signed and self.depth)
            and not (last.kind == "t" and self.said[self.at] in ":-=")
        ):
            return False
        if item.kind == "t" and last.kind == "t" and not self.depth:
            return False
        follows = self._word(item.end)
        if item.kind == "t" and is_word(follows) and follows not in _GO_ON:
            return False
        if item.places != last.places:
            self.conflict = True
        self.at = item.end
        return True

    def _range(self) -> bool:
        """Whether "- 3" or "to 3" after a number was taken as a range."""
        at = self.at + 1
        while at < self.size and (self.said[at] in _NOUNS or self.said[at] in _OPEN):
            at += 1
        item = self._item(at) if at < self.size else None
        last = self.last
        if item is None or last is None or len(last.places) != 1:
            return False
        if item.kind == "x":
            self.out = True
        elif item.kind not in "nol":
            return False
        else:
            low, high = last.places[0], item.places[0]
            if low > high:
                self.conflict = True
            (self.denied if self.deny else self.taken).update(range(low, high + 1))
        self.at = item.end
        self.last = item
        return True

    # ---- items ------------------------------------------------------------------------------------------------------

    def _word(self, at: int) -> str:
        return self.said[at] if at < self.size else ""

    def _take(self, item: _Item) -> None:
        if item.kind == "x":
            self.out = True
        elif self.deny:
            # "1, not 2, 3": whether 3 is meant or denied cannot be told.
            if self.comma and self.deny == "not" and self.denied and self.taken:
                self.conflict = True
            self.denied.update(item.places)
            if self.options.none in self.taken and self.deny != "not":
                self.conflict = True
        else:
            self.taken.update(item.places)
        self.last = item
        self.at = item.end

    def _item(self, at: int) -> _Item | None:  # noqa: PLR0911 - one for each kind of item
        """The item at a place. Texts come first, so that figures in them are not taken for numbers."""
        said, options = self.said, self.options
        word = said[at]
        text = self._text(at)
        if text is not None:
            return text
        if word.isdigit():
            return self._ended(self._number(word, at + 1, "n"))
        if word[0].isdigit() and word[-2:] in _ORDINAL:
            return self._ended(self._number(word[:-2], at + 1, "o"))
        letter = options.letters.get(word)
        if letter is not None and not (word in ("a", "i") and self._is_free_word(at + 1)):
            return self._ended(_Item((letter,), at + 1, "l"))
        if word in _ALL:
            end = at + 1
            while end < self.size and (said[end] in _OF_ALL or said[end].isdigit()):
                end += 1
            every = tuple(n for n in range(options.number) if n != options.none)
            return self._ended(_Item(every, end, "a")) if every else None
        if options.none is not None and word in _NOTHING and self._word(at + 1) not in options.letters:
            end = at + 1
            while end < self.size and said[end] in _OF_ALL:
                end += 1
            if word == "none" or end > at + 1:
                return self._ended(_Item((options.none,), end, "t"))
        return None

    def _text(self, at: int) -> _Item | None:
        said, options = self.said, self.options
        if said[at] in ARTICLES and at + 1 < self.size and said[at + 1] not in ARTICLES:
            at += 1
        full, end, only, stop = options.text(said, at)
        if stop > end:
            item = self._ended(_Item((only,), stop, "t"))
            if item is not None:
                return item
        if full < 0:
            return None
        if full == options.none:
            while end < self.size and said[end] in _OF_ALL:
                end += 1
        return self._ended(_Item((full,), end, "t"))

    def _number(self, figures: str, end: int, kind: str) -> _Item:
        # Figures without end, or of scripts that Python does not read, are no number of an option.
        number = int(figures) if len(figures) < 7 and figures.isdecimal() else _MANY
        if 1 <= number <= self.options.number:
            return _Item((number - 1,), end, kind)
        return _Item((), end, "x")

    def _is_free_word(self, at: int) -> bool:
        word = self._word(at)
        return (
            is_word(word)
            and word not in _AND
            and word not in _OR
            and word not in _NOT
            and word not in _CLAUSES
        )

    def _ended(self, item: _Item) -> _Item | None:  # noqa: PLR0911
        """The item, if what follows lets it end here."""
        word = self._word(item.end)
        if not word or (not is_word(word) and word != "%"):
            return item
        if (
            word in _AND
            or word in _OR
            or word in _NOT
            or word == "but"
            or word in _ALONE
            or (word in _TO and item.kind in "nolx")
        ):
            return item
        if item.kind in "toa" and (word in _NOUNS or word == "1"):
            # "the red points", "the third one", "all points"
            return item._replace(end=item.end + 1)
        if item.kind in "nl" and self._text(item.end) is not None:
            return item
        if self.strict:
            return None
        if word in _CLAUSES:
            return item
        return item if item.kind == "t" and item.places[0] in self.options.short else None
