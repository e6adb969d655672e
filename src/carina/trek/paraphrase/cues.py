"""Cues: words that matter in a question. They are read from the file of their language and searched for in texts."""

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

import msgspec
import yaml

from carina.studies.vocabulary import DEVICES, FINDINGS
from carina.trek.wording import load_wording


class Cues:
    """A list of cues, found as whole words; a star stands for any ending."""

    def __init__(self, cues: Iterable[str]) -> None:
        self._expressions = {cue: re.compile(_cue_pattern(cue), re.IGNORECASE) for cue in cues}
        longest_first = sorted(self._expressions, key=len, reverse=True)
        alternatives = "|".join(map(_cue_pattern, longest_first))
        self._any = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)

    def within(self, text: str) -> frozenset[str]:
        """The cues that a text contains."""
        found = {match.group().casefold() for match in self._any.finditer(text)}
        return frozenset(
            cue
            for cue, expression in self._expressions.items()
            if any(expression.fullmatch(words) for words in found)
        )

    def times(self, text: str) -> int:
        """How often any of the cues occurs in a text."""
        return sum(1 for _ in self._any.finditer(text))

    def begin(self, text: str) -> bool:
        """Whether a text begins with one of them."""
        return self._any.match(text) is not None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    senses: dict[str, list[str]]
    terms: list[str]
    form: list[str]
    leading: list[str]
    negations: list[str]
    numbers: list[str]
    ordinary: list[str]
    open: list[str]
    commands: list[str]
    polar: list[str]
    whether: list[str]


class CueLists:
    """All cues of one language."""

    def __init__(self, language: str) -> None:
        content = (resources.files(__package__) / f"{language}.yaml").read_text("utf-8")
        file = msgspec.convert(yaml.safe_load(content), _File)
        names = {*FINDINGS, *DEVICES, *load_wording(language).common["names"]}
        self.senses = {sense: Cues(cues) for sense, cues in file.senses.items()}
        self.terms = Cues([*file.terms, *(f"{name}*" for name in sorted(names))])
        self.form = Cues(file.form)
        self.leading = Cues(file.leading)
        self.negations = Cues(file.negations)
        self.numbers = frozenset(file.numbers)
        self.ordinary = frozenset(file.ordinary)
        self.open = Cues(file.open)
        self.commands = Cues(file.commands)
        self.polar = Cues(file.polar)
        self.whether = Cues(file.whether)


@lru_cache(maxsize=4)
def load_cue_lists(language: str = "en") -> CueLists:
    """The cues of a language; read once in each process."""
    return CueLists(language)


def _cue_pattern(cue: str) -> str:
    return re.escape(cue.removesuffix("*")) + (r"\w*" if cue.endswith("*") else "")
