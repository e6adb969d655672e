"""The mentions of a sentence, with all that is said of each."""

from carina.trek.reports.modify import date, grade, locate, look_inside, weaken
from carina.trek.reports.scope import deny, doubt
from carina.trek.reports.sentence import Mention, SentenceText


def read_mentions(sentence: SentenceText, *, advice: bool) -> list[Mention]:
    """The mentions of a sentence, with all that is said of them; in advice nothing is new or gone."""
    if not sentence.mentions:
        return []
    for mention in sentence.mentions:
        mention.clause = sentence.clauses[mention.start]
    deny(sentence)
    doubt(sentence)
    date(sentence, advice=advice)
    grade(sentence)
    look_inside(sentence)
    weaken(sentence)
    locate(sentence)
    _explain_away(sentence)
    _past(sentence)
    return sentence.mentions


def _explain_away(sentence: SentenceText) -> None:
    """A weak word, or an organ's state, is dropped where the same clause says what it is."""
    named = {(m.clause, m.name) for m in sentence.mentions if m.how == "named"}
    sentence.mentions = [m for m in sentence.mentions if m.how != "state" or (m.clause, m.name) not in named]
    kept: list[Mention] = []
    for mention in sentence.mentions:
        stronger = _explained_by(sentence, mention) if mention.weak else None
        if stronger is None:
            kept.append(mention)
        elif stronger.certainty != "absent" and not stronger.places:
            stronger.places = mention.places  # "The retrocardiac density may be pneumonia": it lies there.
    sentence.mentions = kept


def _explained_by(sentence: SentenceText, weak: Mention) -> Mention | None:
    """The stronger name of the same clause that says what a weak one is; what is listed beside it does not."""
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
            return mention
    return None


def _past(sentence: SentenceText) -> None:
    for item, _ in sentence.of_kind("past"):
        target = sentence.after(item.end)
        if target is None or target.kind == "device":
            continue
        article = sentence.words[target.start - 1].text if target.start else ""
        if article != "the" and sentence.words[item.end].text != "the":
            for mention in sentence.listed_after(target):
                mention.past = True
