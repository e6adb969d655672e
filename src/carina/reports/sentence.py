"""Parse a sentence: its words, phrases and clauses, and the places where it names a finding or a device."""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal

from carina.reports.lexicon import Lexicon, OrganState
from carina.reports.phrases import Item, Role, Word, word_set
from carina.reports.places import Place, find_places
from carina.studies.vocabulary import Certainty, Distribution, Severity, Trend

How = Literal["named", "state", "panel"]
SKIPPED: Final = word_set(
    "amount amounts degree area areas of focus foci region element component band bands the a an very some any "
    "more less rather quite relatively overall interval and or to early likely xxxx"
)
"""Words that may stand between an adjective and its noun."""
STOPS: Final = frozenset({",", ".", ";", ":", "(", ")"}) | word_set(
    "in at on with within from since by for to which that without after following"
)
"""Words at which the reach of an adjective towards a noun ends."""
NAMING: Final = ("finding", "device", "panel", "weak")
"""Kinds of phrases that name something, strongest first."""
PLACING: Final = ("side", "level", "lobe", "site")
AFTERWARDS: Final = word_set("after following")
"""Words that introduce an event: "pneumothorax after chest tube removal"."""
LEADING: Final = frozenset({"although", "though", "while", "whereas", "despite"})


@dataclass(slots=True)
class Mention:
    """A place where a sentence names a finding or device: words `start` to `end`."""

    kind: Literal["finding", "device"]
    names: tuple[str, ...]
    start: int
    end: int
    certainty: Certainty = "present"
    how: How = "named"
    weak: bool = False
    past: bool = False
    """Mentioned without a statement: as history, as something to look for, or with only its grade denied."""
    denied: bool = False
    """Absent by a cue of denial, and not by the state of an organ."""
    trend: Trend | None = None
    severity: Severity | None = None
    distribution: Distribution | None = None
    looks: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    """What a denial is limited to: "acute", "displaced"."""
    places: list[Place] = field(default_factory=list)
    clause: int = 0
    organ: Item | None = None
    """The organ, for a finding that is stated as the state of an organ."""

    @property
    def name(self) -> str:
        return self.names[0]


class SentenceText:
    """A parsed sentence: words, phrases, clauses, mentions, places."""

    def __init__(self, text: str, words: list[Word], lexicon: Lexicon) -> None:
        self.text, self.words, self.lexicon = text, words, lexicon
        self.items = lexicon.phrases.find(words)
        self._by_kind: dict[str, list[tuple[Item, Role]]] = {}
        for item in self.items:
            for role in item.roles:
                self._by_kind.setdefault(role.kind, []).append((item, role))
        self.used: set[int] = set()
        """Starts of phrases that are part of a mention and state nothing else."""
        self.mentions: list[Mention] = []
        self.places: list[Place] = []
        self.clauses = self._number_clauses()
        if self.has(*NAMING, "organ"):
            self._breaks = self._count_breaks()
            self.mentions = sorted(
                [*self._find_named(), *self._find_states()], key=lambda mention: mention.start
            )
        self._starts = [mention.start for mention in self.mentions]
        self.item_at = {item.start: item for item in self.items}
        self.mentions_at: dict[int, list[Mention]] = {}
        for mention in self.mentions:
            self.mentions_at.setdefault(mention.start, []).append(mention)
        self._last_or: dict[int, int] | None = None
        if self.mentions and self.has(*PLACING):
            self.places = find_places(text, words, self.items, lexicon)

    def _number_clauses(self) -> list[int]:
        """The number of the clause that each word is in."""
        numbers, clause = [0] * len(self.words), 0
        ends = {item.start for item, _ in self._by_kind.get("clause", ())}
        if not ends:
            return numbers
        leading = False  # "Although there is no effusion, a nodule ...": the comma ends such a clause
        for index, word in enumerate(self.words):
            clause += index in ends
            if index in ends:
                leading = word.text in LEADING
            elif leading and word.text == "," and self._is_article(index + 1):
                clause, leading = clause + 1, False
            numbers[index] = clause
        return numbers

    def _is_article(self, index: int) -> bool:
        return index < len(self.words) and self.words[index].text in ("a", "an", "the", "there", "this")

    def _count_breaks(self) -> list[int]:
        """Number of words before each word that break a list: verbs, relations, ends of clauses."""
        verbs = self.lexicon.verbs
        broken = [word.text in verbs or word.text in AFTERWARDS for word in self.words]
        for kind in ("finding", "device", "organ"):
            for item, _ in self._by_kind.get(kind, ()):
                broken[item.start : item.end] = [False] * (item.end - item.start)
        doubts = {item.start for item, _ in self._by_kind.get("doubt", ())}
        for kind in ("clause", "relation"):
            for item, _ in self._by_kind.get(kind, ()):
                if item.start not in doubts:
                    broken[item.start] = True
        return [0, *accumulate(map(int, broken))]

    def is_list(self, start: int, end: int) -> bool:
        """Whether nothing but a list lies between two words."""
        return self._breaks[max(start, end)] == self._breaks[start]

    def of_kind(self, kind: str) -> list[tuple[Item, Role]]:
        """Phrases that have a role of this kind and are not part of a mention."""
        found = self._by_kind.get(kind)
        return [each for each in found if each[0].start not in self.used] if found else []

    def has(self, *kinds: str) -> bool:
        return any(kind in self._by_kind for kind in kinds)

    def before(self, word: int) -> Mention | None:
        """The last mention that ends at or before a word, in its clause."""
        index = bisect_left(self._starts, word) - 1
        while index >= 0 and self.mentions[index].end > word:
            index -= 1
        found = self.mentions[index] if index >= 0 else None
        return found if found and self._same_clause(found.start, word) else None

    def after(self, word: int) -> Mention | None:
        """The first mention that starts at or behind a word, in the clause of the word before it."""
        index = bisect_left(self._starts, word)
        found = self.mentions[index] if index < len(self.mentions) else None
        return found if found and self._same_clause(found.start, max(0, word - 1)) else None

    def _same_clause(self, one: int, other: int) -> bool:
        last = len(self.words) - 1
        return self.clauses[min(one, last)] == self.clauses[min(other, last)]

    def last_or(self, word: int) -> int:
        """The last "or" of a word's clause; before it, commas separate items of one list."""
        if self._last_or is None:
            listed = (index for index, each in enumerate(self.words) if each.text in ("or", "nor"))
            self._last_or = {self.clauses[index]: index for index in listed}
        return self._last_or.get(self.clauses[word], -1)

    def find_listed_before(self, mention: Mention) -> list[Mention]:
        """The mention and those listed before it."""
        index = self.mentions.index(mention)
        found = [mention]
        while index > 0 and self.is_list(self.mentions[index - 1].end, found[-1].start):
            index -= 1
            found.append(self.mentions[index])
        return found

    def find_listed_after(self, mention: Mention) -> list[Mention]:
        """The mention and those listed behind it."""
        index = self.mentions.index(mention)
        found = [mention]
        while index + 1 < len(self.mentions) and self.is_list(found[-1].end, self.mentions[index + 1].start):
            index += 1
            found.append(self.mentions[index])
        return found

    def find_described(self, item: Item) -> Mention | None:
        """The mention that an adjective stands before."""
        target = self.after(item.end)
        if target is None:
            return None
        for index in range(item.end, target.start):
            word = self.words[index].text
            if word in STOPS or word in self.lexicon.verbs:
                # "a tortuous, calcified aorta", "small, loculated effusion": a comma between adjectives.
                if word == "," and index == item.end and self.is_modifier(index + 1):
                    continue
                return None
            if word in ("and", "or") and not (index == item.end and self.is_modifier(index + 1)):
                return None
            if word == "of" and self.words[index - 1].text not in SKIPPED:
                return None
        return target

    def is_modifier(self, index: int) -> bool:
        if index >= len(self.words):
            return False
        kinds = {role.kind for role in self.lexicon.phrases.roles(self.words[index].text)}
        return bool(kinds & {"severity", "look", "trend", "distribution", "side", "level"})

    def _find_named(self) -> list[Mention]:
        found: list[Mention] = []
        self.used |= {item.start for item, _ in self._by_kind.get("none", ())}
        for naming in NAMING:
            for item, role in self.of_kind(naming):
                self.used.add(item.start)
                if naming == "panel":
                    found.append(
                        Mention("finding", self._expand_panel(role.key), item.start, item.end, how="panel")
                    )
                    continue
                names = tuple(r.key for r in item.roles if r.kind == naming)
                kind: Literal["finding", "device"] = "device" if naming == "device" else "finding"
                found.append(Mention(kind, names, item.start, item.end, weak=naming == "weak"))
        return found

    def _expand_panel(self, key: str) -> tuple[str, ...]:
        """Findings that a panel denies; for a bare "abnormality", those that its organs do not have when normal."""
        if key == "nothing abnormal":
            organs = [
                r.key for item in self.items for r in item.roles if r.kind == "organ" and r.key != "chest"
            ]
            means = [state for organ in organs for state in self.lexicon.organs.get((organ, "normal"), ())]
            if means:
                return tuple(dict.fromkeys(name for state in means for name in state.names))
        return self.lexicon.panels[key]

    def _find_states(self) -> list[Mention]:
        """Findings stated as the state of an organ: "the heart is enlarged", "blunting of both angles"."""
        if not self.has("organ") or not self.has("state"):
            return []
        organs = list(dict.fromkeys(item for item, _ in self._by_kind["organ"]))
        found: list[Mention] = []
        for item in self.items:
            states = [role.key for role in item.roles if role.kind == "state"]
            if not states or item.start in self.used:
                continue
            for organ in self._find_organs(item, organs):
                means = self._look_up_state(organ, states)
                for meaning in means:
                    start, end = min(item.start, organ.start), max(item.end, organ.end)
                    if organ.start < item.start:
                        start = item.start  # Adjectives stand before the state, not before the organ.
                    found.append(
                        Mention(
                            "finding",
                            meaning.names,
                            start,
                            end,
                            meaning.certainty,
                            how="state",
                            organ=organ,
                        )
                    )
                if means:
                    self.used.add(item.start)
        return found

    def _look_up_state(self, organ: Item, states: list[str]) -> tuple[OrganState, ...]:
        for role in organ.roles:
            if role.kind == "organ":
                for state in states:
                    means = self.lexicon.organs.get((role.key, state))
                    if means:
                        return means
        return ()

    def _find_organs(self, state: Item, organs: list[Item]) -> list[Item]:
        """Organs that a state belongs to: those right behind it, else those before it, with the organs listed there."""
        index = bisect_left([organ.start for organ in organs], state.start)
        behind = organs[index] if index < len(organs) else None
        before = organs[index - 1] if index > 0 else None
        if behind and self._same_clause(state.start, behind.start) and self._is_attributive(state, behind):
            return self._find_listed_behind(organs, index)
        if before is None or not self._same_clause(before.start, state.start):
            return [behind] if behind and self._lies_in(state, behind) else []
        if self._is_cut(before.end, state.start):
            return []
        found = [before]
        for organ in reversed(organs[: index - 1]):
            if not self.is_list(organ.end, found[-1].start) or self._is_cut(organ.end, found[-1].start):
                break
            found.append(organ)
        return found

    def _is_attributive(self, state: Item, organ: Item) -> bool:
        between = [word.text for word in self.words[state.end : organ.start]]
        if len(between) > 4 or any(word in self.lexicon.verbs or word in STOPS - {"in"} for word in between):
            return False
        before = self.words[state.start - 1].text if state.start else ""
        if between and between[0] in ("and", "or") and not self._is_state(state.end + 1):
            return False
        there = state.start > 1 and self.words[state.start - 2].text == "there"
        return there or not (before in ("is", "are", "be", "appear", "appears") and between[:1] != ["of"])

    def _lies_in(self, state: Item, organ: Item) -> bool:
        """Whether the organ follows as a place: "calcifications are seen within the aortic arch"."""
        between = [word.text for word in self.words[state.end : organ.start]]
        return (
            self._same_clause(state.start, organ.start)
            and len(between) <= 6
            and bool({"in", "within", "of"} & set(between))
        )

    def _is_state(self, index: int) -> bool:
        return any(role.kind == "state" for role in self.lexicon.phrases.roles(self.words[index].text))

    def _find_listed_behind(self, organs: list[Item], index: int) -> list[Item]:
        found = [organs[index]]
        for organ in organs[index + 1 :]:
            between = [word.text for word in self.words[found[-1].end : organ.start]]
            if not between or any(word not in self.lexicon.fillers for word in between):
                break
            nearby = [word.text for word in self.words[organ.end : organ.end + 2]]
            if any(word in self.lexicon.verbs for word in nearby):
                break  # "Normal heart size and the lungs are clear": the subject of the next clause
            found.append(organ)
        return found

    def _is_cut(self, start: int, end: int) -> bool:
        """Whether a finding or another state lies between an organ and its state."""
        for item in self.items[bisect_left([i.start for i in self.items], start) :]:
            if item.start >= end:
                return False
            kinds = {role.kind for role in item.roles}
            if kinds & {"finding", "device", "panel"} or self.words[item.start].text == "with":
                return True
            if "state" in kinds and item.start in self.used:
                # "normal in size and contour", "large and tortuous": states may be listed.
                tail = [word.text for word in self.words[item.end : end]]
                if not set(tail) & {"and", "or"} or len(tail) > 4:
                    return True
        return False
