"""What one sentence states: findings and devices with certainty, place, grade and change.

A sentence is read in one pass over its words (see `phrases`), then every cue looks for what it acts on. Scopes:

- a denial or doubt acts forwards through a list and ends at a clause word ("but"), at "with", at a new subject
  ("there is", "the heart is"), or at a comma or "and" behind a finished verb;
- a cue that stands behind ("cannot be excluded", "has resolved") acts backwards on the nearest finding and on what is
  listed with it without a verb between;
- a grade, look or place acts on the noun it stands before, else on the one behind it.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal, cast

from carina.studies.vocabulary import Certainty, Distribution, Severity, Side, Trend
from carina.trek.reports.lexicon import Lexicon, OrganState
from carina.trek.reports.phrases import Item, Role, Word, word_set
from carina.trek.reports.places import Place, find_places

How = Literal["named", "state", "panel"]
SKIPPED: Final = word_set(
    "amount amounts degree area areas of focus foci region element component band bands the a an very some any "
    "more less rather quite relatively overall interval and or to early likely xxxx"
)
"""Words that may stand between an adjective and its noun."""
STOPS: Final = frozenset({",", ".", ";", ":", "(", ")"}) | word_set(
    "in at on with within from since by for to which that"
)
"""Words that end the reach of an adjective towards a noun."""
GRADED_BEHIND: Final = word_set("is are be been remains remain appears appear of as now considered a an") | {
    ",",
    "(",
}
"""Words behind which a grade is said of what stands before: "effusion, small", "effusion of moderate size"."""
LEADING: Final = frozenset({"although", "though", "while", "whereas", "despite"})
AFTER_LISTS: Final = frozenset({"and", ","})


@dataclass(slots=True)
class Mention:
    """One finding or device where a sentence names it: words `start` to `end`."""

    kind: Literal["finding", "device"]
    names: tuple[str, ...]
    start: int
    end: int
    certainty: Certainty = "present"
    how: How = "named"
    weak: bool = False
    past: bool = False
    """Told of the past, or only looked for."""
    trend: Trend | None = None
    severity: Severity | None = None
    distribution: Distribution | None = None
    looks: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    clause: int = 0

    @property
    def name(self) -> str:
        return self.names[0]


class SentenceText:
    """A sentence taken apart: words, phrases, clauses, mentions, places."""

    def __init__(self, text: str, words: list[Word], lexicon: Lexicon) -> None:
        self.text, self.words, self.lexicon = text, words, lexicon
        self.items = lexicon.phrases.find(words)
        self.clauses = self._clauses()
        self._breaks = self._count_breaks()
        self.used: set[int] = set()
        """Starts of items that are part of a mention, and say nothing else."""
        self.mentions: list[Mention] = []
        self.mentions = sorted([*self._named(), *self._states()], key=lambda mention: mention.start)
        self._starts = [mention.start for mention in self.mentions]
        self.places = find_places(text, words, self.items, lexicon)

    def _clauses(self) -> list[int]:
        """The number of the clause that each word is in."""
        numbers, clause = [0] * len(self.words), 0
        ends = {item.start for item in self.items if any(role.kind == "clause" for role in item.roles)}
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
        """Before each word, how many words that no list contains: verbs, relations, ends of clauses."""
        broken = [word.text in self.lexicon.verbs for word in self.words]
        for item in self.items:
            kinds = {role.kind for role in item.roles}
            if kinds & {"clause", "relation"} and not kinds & {"doubt"}:
                broken[item.start] = True
            elif kinds & {"finding", "device", "organ"}:
                broken[item.start : item.end] = [False] * (item.end - item.start)
        return [0, *accumulate(map(int, broken))]

    def listed(self, start: int, end: int) -> bool:
        """Whether nothing but a list lies between two words."""
        return self._breaks[max(start, end)] == self._breaks[start]

    def of_kind(self, *kinds: str) -> list[tuple[Item, Role]]:
        """The items that have a role of one of these kinds, with the first such role."""
        found = []
        for item in self.items:
            if item.start in self.used:
                continue
            for role in item.roles:
                if role.kind in kinds:
                    found.append((item, role))
                    break
        return found

    def has(self, *kinds: str) -> bool:
        return any(role.kind in kinds for item in self.items for role in item.roles)

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

    def listed_before(self, mention: Mention) -> list[Mention]:
        """The mention and those listed before it."""
        index = self.mentions.index(mention)
        found = [mention]
        while index > 0 and self.listed(self.mentions[index - 1].end, found[-1].start):
            index -= 1
            found.append(self.mentions[index])
        return found

    def adjective_of(self, item: Item) -> Mention | None:
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

    def _named(self) -> list[Mention]:
        found: list[Mention] = []
        for item in self.items:
            role = next((r for r in item.roles if r.kind in ("finding", "device", "weak", "panel")), None)
            if role is None or any(r.kind == "none" for r in item.roles):
                continue
            self.used.add(item.start)
            if role.kind == "panel":
                names = self._panel(role.key)
                mention = Mention("finding", names, item.start, item.end, how="panel")
            else:
                names = tuple(r.key for r in item.roles if r.kind == role.kind)
                kind: Literal["finding", "device"] = "device" if role.kind == "device" else "finding"
                mention = Mention(kind, names, item.start, item.end, weak=role.kind == "weak")
            found.append(mention)
        return found

    def _panel(self, key: str) -> tuple[str, ...]:
        """What a panel denies: where it speaks of "abnormality" alone, what its organs lack when they are normal."""
        if key == "nothing abnormal":
            organs = [
                r.key for item in self.items for r in item.roles if r.kind == "organ" and r.key != "chest"
            ]
            means = [state for organ in organs for state in self.lexicon.organs.get((organ, "normal"), ())]
            if means:
                return tuple(dict.fromkeys(name for state in means for name in state.names))
        return self.lexicon.panels[key]

    def _states(self) -> list[Mention]:
        """Organs in a state: "the heart is enlarged", "normal heart size", "blunting of both angles"."""
        organs = [item for item in self.items if any(role.kind == "organ" for role in item.roles)]
        if not organs:
            return []
        found: list[Mention] = []
        for item in self.items:
            states = [role.key for role in item.roles if role.kind == "state"]
            if not states or item.start in self.used:
                continue
            for organ in self._organs_of(item, organs):
                means = self._meaning(organ, states)
                for meaning in means:
                    start, end = min(item.start, organ.start), max(item.end, organ.end)
                    if organ.start < item.start:
                        start = item.start  # Adjectives stand before the state, not before the organ.
                    found.append(
                        Mention("finding", meaning.names, start, end, meaning.certainty, how="state")
                    )
                if means:
                    self.used.add(item.start)
        return found

    def _meaning(self, organ: Item, states: list[str]) -> tuple[OrganState, ...]:
        for role in organ.roles:
            if role.kind == "organ":
                for state in states:
                    means = self.lexicon.organs.get((role.key, state))
                    if means:
                        return means
        return ()

    def _organs_of(self, state: Item, organs: list[Item]) -> list[Item]:
        """The organs a state is said of: those right behind it, else those before it, with what is listed."""
        index = bisect_left([organ.start for organ in organs], state.start)
        behind = organs[index] if index < len(organs) else None
        before = organs[index - 1] if index > 0 else None
        if behind and self._same_clause(state.start, behind.start) and self._attributive(state, behind):
            return self._listed_behind(organs, index)
        if before is None or not self._same_clause(before.start, state.start):
            return []
        if self._cut(before.end, state.start):
            return []
        found = [before]
        for organ in reversed(organs[: index - 1]):
            if not self.listed(organ.end, found[-1].start) or self._cut(organ.end, found[-1].start):
                break
            found.append(organ)
        return found

    def _attributive(self, state: Item, organ: Item) -> bool:
        between = [word.text for word in self.words[state.end : organ.start]]
        if len(between) > 4 or any(word in self.lexicon.verbs or word in STOPS - {"in"} for word in between):
            return False
        before = self.words[state.start - 1].text if state.start else ""
        if between and between[0] in ("and", "or") and not self._is_state(state.end + 1):
            return False
        there = state.start > 1 and self.words[state.start - 2].text == "there"
        return there or not (before in ("is", "are", "be", "appear", "appears") and between[:1] != ["of"])

    def _is_state(self, index: int) -> bool:
        return any(role.kind == "state" for role in self.lexicon.phrases.roles(self.words[index].text))

    def _listed_behind(self, organs: list[Item], index: int) -> list[Item]:
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

    def _cut(self, start: int, end: int) -> bool:
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


def read_mentions(sentence: SentenceText, *, advice: bool) -> list[Mention]:
    """The mentions of a sentence, with all that is said of them; in advice nothing is new or gone."""
    if not sentence.mentions:
        return []
    for mention in sentence.mentions:
        mention.clause = sentence.clauses[mention.start]
    _deny(sentence)
    _doubt(sentence)
    _date(sentence, advice=advice)
    _grade(sentence)
    _look_inside(sentence)
    _locate(sentence)
    _explain_away(sentence)
    _past(sentence)
    return sentence.mentions


def _deny(sentence: SentenceText) -> None:
    for item, _ in sentence.of_kind("denial"):
        if any(role.kind in ("no denial", "doubts", "doubted", "state") for role in item.roles):
            continue
        for mention in _scope(sentence, item):
            _make_absent(mention)
    for item, _ in sentence.of_kind("denied"):
        target = sentence.before(item.start)
        for mention in sentence.listed_before(target) if target else _scope(sentence, item):
            _make_absent(mention)


def _make_absent(mention: Mention) -> None:
    if mention.how == "state" and mention.certainty == "absent":
        mention.past = True  # "not clear": no statement on any one finding
    mention.certainty = "absent"


def _scope(sentence: SentenceText, cue: Item) -> list[Mention]:
    """The mentions that a cue reaches forwards."""
    found: list[Mention] = []
    words, lexicon = sentence.words, sentence.lexicon
    by_start = {mention.start: mention for mention in reversed(sentence.mentions)}
    finished = False
    position = cue.end
    later_or = _last_or(sentence, cue)
    kinds_at = {item.start: item for item in sentence.items}
    while position < len(words) and sentence.clauses[position] == sentence.clauses[cue.start]:
        word = words[position].text
        if position in by_start:
            if found and by_start[position].how == "state" and by_start[position].certainty == "absent":
                break  # "no effusion, normal heart"
            same = [mention for mention in sentence.mentions if mention.start == position]
            found += same
            position = (
                max(mention.end for mention in same if mention.how != "state")
                if any(mention.how != "state" for mention in same)
                else position + 1
            )
            continue
        item = kinds_at.get(position)
        kinds = {role.kind for role in item.roles} if item else set()
        if found and (word in ("there", "with", "which") or word == "without"):
            break
        if found and "relation" in kinds and not kinds & {"doubt", "doubts"}:
            break
        if (
            found
            and item
            and "organ" in kinds
            and item.end < len(words)
            and words[item.end].text in lexicon.verbs
        ):
            break
        if found and finished and word in AFTER_LISTS:
            break
        if found and word == "," and position > later_or and _starts_anew(sentence, position + 1):
            break
        if found and word in lexicon.verbs:
            finished = True
        position += 1
    return found


def _last_or(sentence: SentenceText, cue: Item) -> int:
    """The last "or" of the clause: up to it, commas separate what is denied together."""
    last = -1
    for position in range(cue.end, len(sentence.words)):
        if sentence.clauses[position] != sentence.clauses[cue.start]:
            break
        if sentence.words[position].text in ("or", "nor"):
            last = position
    return last


def _starts_anew(sentence: SentenceText, index: int) -> bool:
    """Whether a grade or a "stable" opens a new phrase behind a comma: "no effusion, mild cardiomegaly"."""
    if index >= len(sentence.words):
        return False
    roles = sentence.lexicon.phrases.roles(sentence.words[index].text)
    return any(role.kind == "severity" or (role.kind == "trend" and role.key != "new") for role in roles)


def _doubt(sentence: SentenceText) -> None:
    words = sentence.words
    for item, _ in sentence.of_kind("doubts"):
        for mention in _scope(sentence, item):
            _make_uncertain(mention)
    for item, _ in sentence.of_kind("doubt"):
        target = sentence.after(item.end)
        if (
            target is None
            or not sentence.listed(item.end, target.start)
            or _comma(words, item.end, target.start)
        ):
            back = sentence.before(item.start)
            if back is not None and item.end < len(words) and words[item.end].text in (".", ",", ")"):
                _make_uncertain(back)
            continue
        _make_uncertain(target)
        for other in sentence.mentions:
            if other.start >= target.end and _joined_by_or(sentence, target.end, other.start):
                _make_uncertain(other)
    for item, _ in sentence.of_kind("doubted"):
        target = sentence.before(item.start)
        if target is not None:
            for mention in sentence.listed_before(target):
                mention.certainty = "uncertain"
        elif (target := sentence.adjective_of(item)) is not None:
            _make_uncertain(target)  # "There is questionable atelectasis."
    _doubt_alternatives(sentence)
    for item, _ in sentence.of_kind("same"):
        before, after = sentence.before(item.start), sentence.after(item.end)
        if before is not None and after is not None:
            after.certainty = before.certainty


def _comma(words: list[Word], start: int, end: int) -> bool:
    return any(word.text == "," for word in words[start:end])


def _joined_by_or(sentence: SentenceText, start: int, end: int) -> bool:
    if not sentence.listed(start, end):
        return False
    between = {word.text for word in sentence.words[start:end]}
    return bool(between & {"or", "versus", "vs", "/"}) and "and" not in between and len(between) <= 6


def _doubt_alternatives(sentence: SentenceText) -> None:
    """ "Atelectasis versus infiltrate", "scar or atelectasis": neither is sure."""
    for first, second in zip(sentence.mentions, sentence.mentions[1:], strict=False):
        if first.how != "named" or second.how != "named" or first.clause != second.clause:
            continue
        between = [word.text for word in sentence.words[first.end : second.start]]
        if "and" in between or not sentence.listed(first.end, second.start):
            continue
        if {"versus", "vs"} & set(between) or (len(between) <= 5 and {"or", "/"} & set(between)):
            _make_uncertain(first)
            _make_uncertain(second)


def _make_uncertain(mention: Mention) -> None:
    if mention.certainty == "present":
        mention.certainty = "uncertain"


def _date(sentence: SentenceText, *, advice: bool) -> None:
    """Trends: new, worse, improved, unchanged, and what has gone."""
    words = sentence.words
    if not advice:
        for item, _ in sentence.of_kind("gone"):
            for mention in _acted_on(sentence, item):
                if mention.certainty != "absent" or mention.how == "named":
                    mention.certainty, mention.trend = "absent", "resolved"
    for item, role in sentence.of_kind("trend"):
        if advice and role.key == "improved":
            continue
        following = words[item.end].text if item.end < len(words) else ""
        if words[item.start].text in ("larger", "smaller") and following == "on":
            continue
        for mention in _acted_on(sentence, item):
            if mention.certainty == "absent" and mention.how != "named":
                continue
            if mention.trend is None and not (mention.certainty == "absent" and role.key != "resolved"):
                mention.trend = cast(Trend, role.key)


def _acted_on(sentence: SentenceText, item: Item) -> list[Mention]:
    """What a word of change is said of: what follows "... of" or the adjective, else what stands before."""
    last = sentence.words[item.end - 1].text
    if last in ("of", "in", "residual"):
        target = sentence.after(item.end)
        if target is not None:
            return _listed_after(sentence, target)
    before = sentence.words[item.start - 1].text if item.start else ""
    target = sentence.adjective_of(item)
    if target is not None and before not in ("is", "are", "has", "have", "been"):
        return [target]
    target = sentence.before(item.start)
    if target is not None:
        return [mention for mention in sentence.listed_before(target) if mention.how == "named"] or [target]
    target = sentence.after(item.end)
    return [target] if target else []


def _listed_after(sentence: SentenceText, mention: Mention) -> list[Mention]:
    index = sentence.mentions.index(mention)
    found = [mention]
    while index + 1 < len(sentence.mentions) and sentence.listed(
        found[-1].end, sentence.mentions[index + 1].start
    ):
        index += 1
        found.append(sentence.mentions[index])
    return found


def _grade(sentence: SentenceText) -> None:
    for item, role in sentence.of_kind("severity"):
        target = sentence.adjective_of(item) or sentence.before(item.start)
        if target is not None and target.severity is None and _can_be_graded(sentence, target, item):
            target.severity = cast(Severity, role.key)
    for item, role in sentence.of_kind("distribution"):
        target = sentence.adjective_of(item) or sentence.before(item.start)
        if target is not None and target.distribution is None:
            target.distribution = cast(Distribution, role.key)
    for item in sentence.items:
        if item.start in sentence.used:
            continue
        for role in item.roles:
            if role.kind == "look":
                target = sentence.adjective_of(item) or sentence.before(item.start)
                if target is not None and role.key not in target.looks:
                    target.looks.append(role.key)


def _can_be_graded(sentence: SentenceText, target: Mention, item: Item) -> bool:
    """A grade behind its noun stands apart ("effusion, small"): not in "effusion in a large patient"."""
    if item.end <= target.start or target.start <= item.start < target.end:
        return True
    return sentence.words[item.start - 1].text in GRADED_BEHIND


def _look_inside(sentence: SentenceText) -> None:
    """Words within a phrase that say more: "calcified granuloma", "tension pneumothorax"."""
    for mention in sentence.mentions:
        if mention.how != "named" or mention.end - mention.start < 2:
            continue
        for word in sentence.words[mention.start : mention.end]:
            for role in sentence.lexicon.phrases.roles(word.text):
                if role.kind == "look" and role.key not in mention.looks:
                    mention.looks.append(role.key)
                elif role.kind == "side":
                    side = cast(Side, role.key)
                    mention.places.append(Place(mention.start, mention.end, side, (), None))


def _locate(sentence: SentenceText) -> None:
    words, lexicon = sentence.words, sentence.lexicon
    for place in sentence.places:
        if any(m.start <= place.start and place.end <= m.end and m.how == "named" for m in sentence.mentions):
            continue
        before = words[place.start - 1].text if place.start else ""
        if before == "the" and place.start > 1:
            before = words[place.start - 2].text
        if words[place.start].text in lexicon.into_place:  # "throughout"
            before = words[place.start].text
        item = Item(place.start, place.end, ())
        back = sentence.before(place.start)
        target = sentence.adjective_of(item)
        if before in lexicon.into_place and back is not None and target is not None:
            between = range(place.end, target.start)
            if not all(sentence.is_modifier(index) for index in between):
                target = None
        target = target or back or sentence.after(place.end)
        inside = next((m for m in sentence.mentions if m.start <= place.start < m.end), None)
        target = inside or target
        if target is not None:
            target.places.append(place)


def _explain_away(sentence: SentenceText) -> None:
    """A weak word, or an organ's state, is dropped where the same clause says what it is."""
    named = {(m.clause, m.name) for m in sentence.mentions if m.how == "named"}
    sentence.mentions = [m for m in sentence.mentions if m.how != "state" or (m.clause, m.name) not in named]
    if any(mention.weak for mention in sentence.mentions):
        sentence.mentions = [m for m in sentence.mentions if not (m.weak and _is_explained(sentence, m))]


def _is_explained(sentence: SentenceText, weak: Mention) -> bool:
    """Whether a stronger name of the same clause says what a weak one is; what is listed beside it does not."""
    for mention in sentence.mentions:
        if (
            mention.weak
            or mention.how != "named"
            or mention.kind != "finding"
            or mention.clause != weak.clause
        ):
            continue
        start, end = min(weak.end, mention.end), max(weak.start, mention.start)
        if not sentence.listed(start, end):
            return True
    return False


def _past(sentence: SentenceText) -> None:
    for item, _ in sentence.of_kind("past"):
        target = sentence.after(item.end)
        if target is None or target.kind == "device":
            continue
        article = sentence.words[target.start - 1].text if target.start else ""
        if article != "the" and sentence.words[item.end].text != "the":
            for mention in _listed_after(sentence, target):
                mention.past = True
