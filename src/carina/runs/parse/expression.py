"""Read answer expressions: numbers, letters and option texts that are joined, excluded or given as alternatives."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

from carina.runs.parse.choices import ARTICLES, Choices, is_word, word_set
from carina.runs.records import Status

_MANY: Final = 10**6
_LONG: Final = 4
"""Characters from which a token is not the number of an option in a list without commas."""
_WORDS_OF_LETTERS: Final = frozenset(
    ("be", "ad", "am", "an", "as", "at", "do", "go", "in", "is", "it", "no", "ace")
)

_NOUNS: Final = word_set(
    "option options choice choices answer answers number numbers mask masks point points region regions "
    "statement statements image images item items label letter candidate colour color coloured colored "
    "panel picture alternative response finding findings contour contours segmentation overlay dot dots "
    "marker markers"
)
_LEADS: Final = _NOUNS | {"only", "just", "both", "either", "following"}
"""Words before an item that do not change its meaning."""
_LINKS: Final = word_set(
    "is are was were be would will should must it its it's that's this these those most likely probably "
    "clearly definitely simply therefore thus then so to of as follows correct best for with go my"
)
"""Words between a marker and its answer."""
_CLAUSES: Final = word_set(
    "because since as due given based which where while with for so is are was were has have appears "
    "appear seems fits shows covers that there it this these i we though although best most matches "
    "corresponds represents after considering clearly here"
)
"""First words of a remark about an answer."""
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
"""Signs before the first item of a line."""
_NEUTRAL: Final = frozenset("\"'#|\x01([{:-=>")
_ALL: Final = frozenset(("all", "everything", "every", "each"))
_OF_ALL: Final = _NOUNS | {"of", "the", "above", "them", "these", "those", "listed", "given", "shown", "here"}
_NOTHING: Final = frozenset(("none", "neither", "nothing"))
_GO_ON: Final = _AND | _OR | _NOT | _NOUNS
"""Words that may follow the text of an option within an expression."""


class Expression(NamedTuple):
    """The options that an expression names."""

    status: Status
    places: frozenset[int]
    """Options by place, from 0."""
    is_open: bool
    """Whether it ends with a comma, "and" or the like, so that another item is missing."""


class _ExpressionItem(NamedTuple):
    places: tuple[int, ...]
    end: int
    kind: str
    """n: number, o: ordinal, l: letter, t: text, a: all, x: a number that no option has."""


def read_expression(tokens: list[str], options: Choices, *, strict: bool) -> Expression | None:
    """The expression at the beginning of a line, or None.

    Args:
        tokens: Tokens of the line.
        options: The options of the step.
        strict: Allow only the expression and remarks in brackets; else a remark may follow the expression.
    """
    return _ExpressionReader(tokens, options, strict=strict).read_line()


class _ExpressionReader:
    """One pass over the tokens of a line."""

    __slots__ = (
        "after_comma",
        "at",
        "depth",
        "excluded",
        "has_alternatives",
        "has_conflict",
        "included",
        "is_out_of_range",
        "last",
        "negation",
        "numbers_from",
        "options",
        "size",
        "strict",
        "tokens",
    )

    def __init__(self, tokens: list[str], options: Choices, *, strict: bool) -> None:
        self.tokens = tokens
        self.size = len(tokens)
        self.options = options
        self.strict = strict
        self.at = self.depth = 0
        self.included: set[int] = set()
        self.excluded: set[int] = set()
        self.negation = ""
        self.numbers_from: int | None = None
        self.after_comma = self.has_alternatives = self.has_conflict = self.is_out_of_range = False
        self.last: _ExpressionItem | None = None

    # ---- the line ---------------------------------------------------------------------------------------------------

    def read_line(self) -> Expression | None:
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
        if self.last is None or not (self.included or self.is_out_of_range):
            return None
        return self._to_expression(is_open=expecting and self.at >= self.size)

    def _to_expression(self, *, is_open: bool) -> Expression:
        chosen = frozenset(self.included - self.excluded)
        status: Status = "ok"
        if self.is_out_of_range:
            status = "out_of_range"
        elif (
            self.has_conflict
            or not chosen
            or (self.has_alternatives and len(self.included) > 1)
            or (self.options.none in chosen and len(chosen) > 1)
        ):
            status = "ambiguous"
        elif len(chosen) > 1 and not self.options.multiple:
            status = "too_many"
        return Expression(status, chosen, is_open)

    # ---- where an item must come ------------------------------------------------------------------------------------

    def _before_item(self) -> str | None:
        word = self.tokens[self.at]
        item = self._item_at(self.at)
        if item is not None:
            self._add_item(item)
            return "item"
        if word in _OPEN:
            self.depth += 1
        elif word in _NOT:
            self.negation = word
        elif word == "but":
            self.negation = ""
        elif word in _OR and self.last is not None:
            self.has_alternatives = self.has_alternatives or not self.negation
        elif not (
            word in _NEUTRAL
            or word in ARTICLES
            or word in _LEADS
            or word in _AND
            or word == "than"
            or (self.last is None and word in _LINKS and not self.strict)
            or (self.negation and word == "of")
            or (self.has_alternatives and word in _HEDGES)
        ):
            return self._skip_remark()
        self.at += 1
        return "skip"

    def _skip_remark(self) -> str | None:
        """Handle a word that is no item: a remark after a comma, or not an expression."""
        if self.last is None:
            return None
        word = self.tokens[self.at]
        # "1, 3 ribs are covered": the end of the answer is not clear.
        if word[0].isdigit() and not self.depth:
            return None
        if self.depth and self.after_comma:
            self._leave_bracket()
            return "skip" if self.at < self.size else "end"
        if not is_word(word) and self.at == self.size - 1:
            return "end"
        if not self.strict and (self.after_comma or self.last.kind == "t"):
            return "end"
        return None

    # ---- after an item ----------------------------------------------------------------------------------------------

    def _after_item(self) -> str | None:  # noqa: PLR0911, PLR0912 - one branch for each kind of word
        tokens, at = self.tokens, self.at
        word = tokens[at]
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
            if tokens[at - 1] in _CLOSE and self._lists_brackets(at, last):
                return "next"
            return self._open_bracket()
        if word in _TO and last.kind in "nol" and self._reads_range():
            return "same"
        if word in _AND:
            self.after_comma = word in ",;"
            self.at += 1
            return "next"
        if word in _OR:
            # "not 1 or 2" denies both.
            self.has_alternatives = self.has_alternatives or not self.negation
            self.after_comma = False
            self.at += 1
            return "next"
        if word in _NOT or (
            word == "but" and (last.kind == "a" or self.negation or self._word_at(at + 1) in _NOT)
        ):
            self.negation = "" if word == "but" and self.negation else word
            self.after_comma = False
            self.at += 1
            return "next"
        if word in _ALONE or (word in _NOUNS and last.kind in "toa"):
            self.at += 1
            return "same"
        if self._repeats_item(at if is_word(word) else at + 1, signed=not is_word(word)):
            return "same"
        if not is_word(word):
            return self._end_of_sentence(word)
        if self.depth:
            self._leave_bracket()
            return "same" if self.at < self.size else "end"
        if self._lists_numbers(at):
            return "next"
        if self.strict:
            return None
        if word in _CLAUSES:
            denied = word in _JUDGED and any(w in _DENIED for w in tokens[at : at + 6])
            return None if denied else "end"
        return "end" if last.kind == "t" and last.places[0] in self.options.short else None

    def _end_of_sentence(self, word: str) -> str | None:
        if self.depth:
            self._leave_bracket()
            return "same" if self.at < self.size else "end"
        if word == "%":
            return None
        if self.options.multiple and word == "." and self._continues_list():
            return "next"
        if not self.strict:
            return "end"
        rest = self.tokens[self.at + 1 :]
        return None if any(is_word(w) for w in rest) else "end"

    def _lists_brackets(self, at: int, last: _ExpressionItem) -> bool:
        """Whether a bracket begins another bracketed number or letter, as in "[1][4]" and "(A) (C)"."""
        if self.depth or last.kind not in "nl":
            return False
        if self._word_at(at + 2) not in _CLOSE:
            return False
        item = self._item_at(at + 1)
        return item is not None and item.kind == last.kind

    def _lists_numbers(self, at: int) -> bool:
        """Whether the rest of the line is numbers or letters without commas, as in "1 4"."""
        if self.depth or self.last is None or self.last.kind not in "nlx" or self.last.end != at:
            return False
        return self._may_be_listed(self.tokens[at]) and at >= self._numbers_from()

    def _may_be_listed(self, word: str) -> bool:
        return word[0].isdigit() or word in self.options.letters

    def _numbers_from(self) -> int:
        """The place of the token from which on there are only numbers, or only letters of options, and a full stop."""
        if self.numbers_from is None:
            at = self.size - 1 if self.tokens[-1] == "." else self.size
            named: Callable[[str], bool] = (
                self.options.letters.__contains__ if self._word_at(at - 1).isalpha() else str.isdecimal
            )
            while at > 0 and len(self.tokens[at - 1]) < _LONG and named(self.tokens[at - 1]):
                at -= 1
            self.numbers_from = at
        return self.numbers_from

    def _continues_list(self) -> bool:
        """Whether another option follows a full stop: "A. Pneumonia. and C. Atelectasis.", "1. Red. 3. Blue."."""
        at = self.at + 1
        while self._word_at(at) in _AND:
            at += 1
        if at == self.at + 1 and not (
            self._word_at(at + 1) in (".", ")", ":")
            and (label := self._item_at(at)) is not None
            and label.kind in "nl"
            and (text := self._text_at(at + 2)) is not None
            and text.places == label.places
        ):
            return False
        item = self._item_at(at) if at < self.size else None
        if item is None or item.kind not in "nlt":
            return False
        self.at, self.after_comma = at, False
        return True

    def _open_bracket(self) -> str | None:
        """Handle a bracket after an item: the same option in other words, more items, or a remark."""
        at = self.at + 1
        word = self._word_at(at)
        self.depth += 1
        if word in _AND or word in _OR or word in _NOT:
            self.at = at
            return "same"
        if word in _HEDGES and at + 1 < self.size and self._item_at(at + 1) is not None:
            self.has_alternatives = True
            self.at = at + 1
            return "next"
        if self._repeats_item(at, signed=True):
            return "same"
        self._leave_bracket()
        return "same" if self.at < self.size else "end"

    def _leave_bracket(self) -> None:
        tokens, at = self.tokens, self.at
        depth = self.depth
        start = at
        while at < self.size and depth:
            word = tokens[at]
            if word in _OPEN and at > start:
                depth += 1
            elif word in _CLOSE:
                depth -= 1
            at += 1
        self.at, self.depth = at, 0

    def _repeats_item(self, at: int, *, signed: bool) -> bool:
        """Whether an option is named directly after the last item, as in "2 (No)", "B. left lung" and "Yes (1)".

        A different option than the last item is a conflict.
        """
        last = self.last
        assert last is not None  # noqa: S101 - only called after an item
        while at < self.size and (
            self.tokens[at] in ARTICLES or self.tokens[at] in _SIGNS or self.tokens[at] in _LEADS
        ):
            at += 1
        if at >= self.size:
            return False
        item = self._item_at(at)
        if item is None or item.kind in "ax" or len(last.places) != 1:
            return False
        if (
            item.kind != "t"
            and not (signed and self.depth)
            and not (last.kind == "t" and self.tokens[self.at] in ":-=")
        ):
            return False
        if item.kind == "t" and last.kind == "t" and not self.depth:
            return False
        follows = self._word_at(item.end)
        if item.kind == "t" and is_word(follows) and follows not in _GO_ON:
            return False
        if item.places != last.places:
            self.has_conflict = True
        self.at = item.end
        return True

    def _reads_range(self) -> bool:
        """Whether "- 3" or "to 3" after a number was read as a range."""
        at = self.at + 1
        while at < self.size and (self.tokens[at] in _NOUNS or self.tokens[at] in _OPEN):
            at += 1
        item = self._item_at(at) if at < self.size else None
        last = self.last
        if item is None or last is None or len(last.places) != 1:
            return False
        if item.kind == "x":
            self.is_out_of_range = True
        elif item.kind not in "nol":
            return False
        else:
            low, high = last.places[0], item.places[0]
            if low > high:
                self.has_conflict = True
            (self.excluded if self.negation else self.included).update(range(low, high + 1))
        self.at = item.end
        self.last = item
        return True

    # ---- items ------------------------------------------------------------------------------------------------------

    def _word_at(self, at: int) -> str:
        return self.tokens[at] if at < self.size else ""

    def _add_item(self, item: _ExpressionItem) -> None:
        if item.kind == "x":
            self.is_out_of_range = True
        elif self.negation:
            # "1, not 2, 3": it is not clear whether 3 is included or excluded.
            if self.after_comma and self.negation == "not" and self.excluded and self.included:
                self.has_conflict = True
            self.excluded.update(item.places)
            if self.options.none in self.included and self.negation != "not":
                self.has_conflict = True
        else:
            self.included.update(item.places)
        self.last = item
        self.at = item.end

    def _item_at(self, at: int) -> _ExpressionItem | None:  # noqa: PLR0911 - one for each kind of item
        """The item at a token. Option texts are tried first, so that digits in them are not read as numbers."""
        tokens, options = self.tokens, self.options
        word = tokens[at]
        text = self._text_at(at)
        if text is not None:
            return text
        if word.isdigit():
            return self._check_end(self._numbered_item(word, at + 1, "n"))
        if word[0].isdigit() and word[-2:] in _ORDINAL:
            return self._check_end(self._numbered_item(word[:-2], at + 1, "o"))
        letter = options.letters.get(word)
        if letter is not None and not (
            word in ("a", "i") and self._is_free_word(at + 1) and at + 1 < self._numbers_from()
        ):
            return self._check_end(_ExpressionItem((letter,), at + 1, "l"))
        if options.letters and options.multiple and (letters := self._joined_letters(word)):
            return self._check_end(_ExpressionItem(letters, at + 1, "l"))
        if word in _ALL:
            end = at + 1
            while end < self.size and (tokens[end] in _OF_ALL or tokens[end].isdigit()):
                end += 1
            every = tuple(n for n in range(options.number) if n != options.none)
            return self._check_end(_ExpressionItem(every, end, "a")) if every else None
        if options.none is not None and word in _NOTHING and self._word_at(at + 1) not in options.letters:
            end = at + 1
            while end < self.size and tokens[end] in _OF_ALL:
                end += 1
            if word == "none" or end > at + 1:
                return self._check_end(_ExpressionItem((options.none,), end, "t"))
        return None

    def _joined_letters(self, word: str) -> tuple[int, ...]:
        """The options of "AC" or "ABD": letters in ascending order without spaces."""
        letters = self.options.letters
        if not 1 < len(word) <= len(letters) or word in _WORDS_OF_LETTERS:
            return ()
        places = tuple(letters.get(letter, -1) for letter in word)
        return places if places[0] >= 0 and all(a < b for a, b in pairwise(places)) else ()

    def _text_at(self, at: int) -> _ExpressionItem | None:
        tokens, options = self.tokens, self.options
        if tokens[at] in ARTICLES and at + 1 < self.size and tokens[at + 1] not in ARTICLES:
            at += 1
        full, end, only, stop = options.find_text(tokens, at)
        if stop > end:
            item = self._check_end(_ExpressionItem((only,), stop, "t"))
            if item is not None:
                return item
        if full < 0:
            return None
        if full == options.none:
            while end < self.size and tokens[end] in _OF_ALL:
                end += 1
        return self._check_end(_ExpressionItem((full,), end, "t"))

    def _numbered_item(self, figures: str, end: int, kind: str) -> _ExpressionItem:
        # Very long numbers, and digits of scripts that Python does not read, are not the number of an option.
        number = int(figures) if len(figures) < 7 and figures.isdecimal() else _MANY
        if 1 <= number <= self.options.number:
            return _ExpressionItem((number - 1,), end, kind)
        return _ExpressionItem((), end, "x")

    def _is_free_word(self, at: int) -> bool:
        word = self._word_at(at)
        return (
            is_word(word)
            and word not in _AND
            and word not in _OR
            and word not in _NOT
            and word not in _CLAUSES
        )

    def _check_end(self, item: _ExpressionItem) -> _ExpressionItem | None:  # noqa: PLR0911
        """The item if the next token allows it to end here, else None."""
        word = self._word_at(item.end)
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
        if item.kind in "nl" and self._text_at(item.end) is not None:
            return item
        if item.kind in "nlx" and self._may_be_listed(word) and item.end >= self._numbers_from():
            return item
        if self.strict:
            return None
        if word in _CLAUSES:
            return item
        return item if item.kind == "t" and item.places[0] in self.options.short else None
