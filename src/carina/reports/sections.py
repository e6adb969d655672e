"""Split report text: raw text into named sections, sections into sentences.

Headings may be in any case, on a line of their own or within a line, or missing. Sentences are spans of a section
without list numbers; decimals, abbreviations and de-identified words ("XXXX") do not end a sentence.
"""

import re
from collections.abc import Iterator
from typing import Final

from carina.reports.phrases import word_set
from carina.studies.model import Report, ReportSection, Sentence
from carina.studies.vocabulary import Section

# ---- sections ----

HEADINGS: Final[dict[str, Section]] = {
    "indication": "indication",
    "indications": "indication",
    "clinical indication": "indication",
    "history": "indication",
    "clinical history": "indication",
    "clinical information": "indication",
    "clinical data": "indication",
    "reason for exam": "indication",
    "reason for examination": "indication",
    "reason for study": "indication",
    "reason": "indication",
    "comparison": "comparison",
    "comparisons": "comparison",
    "comparison studies": "comparison",
    "compared to": "comparison",
    "prior studies": "comparison",
    "technique": "technique",
    "exam": "technique",
    "examination": "technique",
    "study": "technique",
    "procedure": "technique",
    "views": "technique",
    "type of exam": "technique",
    "exam date": "technique",
    "findings": "findings",
    "finding": "findings",
    "report": "findings",
    "chest findings": "findings",
    "observations": "findings",
    "description": "findings",
    "body of report": "findings",
    "addendum": "findings",
    "impression": "impression",
    "impressions": "impression",
    "conclusion": "impression",
    "conclusions": "impression",
    "opinion": "impression",
    "summary": "impression",
    "interpretation": "impression",
    "diagnosis": "impression",
    "assessment": "impression",
    "findings and impression": "impression",
    "findings/impression": "impression",
    "recommendation": "recommendation",
    "recommendations": "recommendation",
    "advice": "recommendation",
    "plan": "recommendation",
}
_NAMES: Final = "|".join(sorted(map(re.escape, HEADINGS), key=len, reverse=True)).replace(r"\ ", r"[ ]")
_HEADING: Final = re.compile(
    # At the start of a line with a colon, a dash or nothing behind it; or anywhere with a colon.
    rf"^[ \t]*[*#_]{{0,3}}(?P<line>{_NAMES})[*_]{{0,3}}[ \t]{{0,8}}(?:[:\uff1a]|-(?=\s)|(?=\r?$))[*_]{{0,3}}"
    rf"|(?<![\w/])(?P<inside>{_NAMES})[ \t]{{0,8}}[:\uff1a]",
    re.IGNORECASE | re.MULTILINE,
)


_REMOVED: Final = re.compile(r"X{3,}|_{3,}")
"""What de-identification leaves in place of a word: XXXX in Open-i, ___ in MIMIC-CXR."""


def has_removed_words(text: str) -> bool:
    """Whether de-identification has removed a word of a text, so that nobody can know what it said.

    Example:
        >>> has_removed_words("Compared to XXXX, no change."), has_removed_words("No change.")
        (True, False)
    """
    return _REMOVED.search(text) is not None


def drop_sentences_with_removed_words(text: str) -> str:
    """A text without the sentences of which de-identification has removed a word; "" where none is left.

    Example:
        >>> drop_sentences_with_removed_words("XXXX year old man. Chest pain.")
        'Chest pain.'
    """
    if not has_removed_words(text):
        return text
    sentences = [text[start:end] for start, end in sentence_spans(text, headed=False)]
    return " ".join(sentence for sentence in sentences if not has_removed_words(sentence))


def split_sections(text: str) -> Report:
    """Split text into sections in reading order, without sentences; text without headings is one findings section.

    Sections of one name are joined, because a section is found by its name.
    """
    heads = [match for match in _HEADING.finditer(text) if _is_heading(match, text)]
    pieces: list[tuple[Section, str]] = []
    names = [HEADINGS[(match["line"] or match["inside"]).lower()] for match in heads]
    before = text[: heads[0].start()] if heads else text
    if before.strip():
        # A title ("CHEST, TWO VIEWS") stands before headings; a body without its own heading as well.
        pieces.append(("technique" if "findings" in names else "findings", before))
    for index, match in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        pieces.append((names[index], text[match.end() : end]))
    joined: dict[Section, list[str]] = {}
    for name, piece in pieces:
        if piece.strip():
            joined.setdefault(name, []).append(piece.strip())
    sections = tuple(ReportSection(name=name, text="\n".join(parts)) for name, parts in joined.items())
    return Report(sections=sections)


def _is_heading(match: re.Match[str], text: str) -> bool:
    """Within a line only a capitalised word after the end of a sentence counts: not "the findings: ..."."""
    name = match["inside"]
    if name is None:
        return True
    before = text[max(0, match.start() - 8) : match.start()].rstrip(" \t")
    return name[0].isupper() and (name.isupper() or not before or before[-1] in ".;:!?\n\r)]")


# ---- sentences ----

LONGEST: Final = 1000
"""Characters of a sentence; a longer one is cut, so that the time stays linear in the length of the text."""
HEADED: Final = ("findings", "impression")
"""Sections in which organs may have headings of their own ("Lungs: ...")."""
ABBREVIATIONS: Final = word_set(
    "dr mr mrs ms prof st vs approx ca e.g eg i.e ie fig no nos etc a.m p.m resp max min incl inc dept pt pts "
    "cf al sq hx dx tx wt ht yr yrs mo wks approx lat ant post sup inf jan feb mar apr jun jul aug sep sept oct nov dec"
)
_MARKER: Final = re.compile(
    r"\s*(?:\(?\d{1,2}[.)](?=\s|[A-Z])|[-*•–](?=\s)|\(\d{1,2}\)|[a-h][.)](?=\s+[A-Z]))\s*"
)
_ORGAN: Final = re.compile(r"\s*[A-Z][A-Za-z/&, ]{2,40}?:(?=\s+[A-Z0-9])")
"""A heading within a section, before a whole sentence: "Lungs: Both are clear."; not "Effusion: none."."""
_STOP: Final = re.compile(r"[.!?]+[\"')\]]{0,3}|\n")
_UNFINISHED: Final = word_set(
    "a an the of in on at with and or to for is are was were by from no without than versus vs"
)


def split_sentences(report: Report) -> Report:
    """Add sentences to a report; one that has sentences keeps them."""
    if report.sentences:
        return report
    seen: set[str] = set()
    sentences: list[Sentence] = []
    for section in report.sections:
        if section.name in seen:
            continue  # A section is found by its name: no sentence can point into a second one.
        seen.add(section.name)
        headed = section.name in HEADED
        for start, end in sentence_spans(section.text, headed=headed):
            sentences.append(Sentence(section=section.name, start=start, end=end))
    return Report(sections=report.sections, sentences=tuple(sentences), language=report.language)


def sentence_spans(text: str, *, headed: bool = True) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence, without space, list numbers and, if `headed`, headings of organs."""
    start = 0
    for end in [*_find_ends(text), len(text)]:
        if end > start:
            yield from _trim(text, start, end, headed=headed)
            start = end


def _find_ends(text: str) -> Iterator[int]:
    begin = 0
    for stop in _STOP.finditer(text):
        end = stop.end()
        ends = _line_ends(text, stop.start()) if stop.group() == "\n" else _is_end(text, begin, stop)
        if ends:
            yield end
            begin = end


def _is_end(text: str, begin: int, stop: re.Match[str]) -> bool:
    at, end = stop.start(), stop.end()
    following = text[end : end + 1]
    if following and not following.isspace():
        # "clear.No effusion" ends a sentence; "2.1 cm" and "p.m." do not.
        return following.isupper() and at > 0 and text[at - 1].islower() and stop.group()[0] == "."
    if stop.group() != ".":
        return True
    word = _word_before(text, begin, at)
    if word.isdigit() and len(word) <= 2 and not text[begin : at - len(word)].strip(" \t\n(-*•"):
        return False  # the number of a list
    if len(word) == 1 and word.isalpha() and word.isupper():
        return not text[end : end + 4].strip()[:1].isdigit() if following else True  # "T. 4"
    return word.lower() not in ABBREVIATIONS or not following


def _word_before(text: str, begin: int, at: int) -> str:
    low = max(begin, at - 24)
    position = at
    while position > low and not text[position - 1].isspace() and text[position - 1] not in "(,;:":
        position -= 1
    return text[position:at]


def _line_ends(text: str, at: int) -> bool:
    """Whether a line break ends a sentence: not where a line was only wrapped."""
    after = text[at + 1 : at + 80]
    ahead = after.lstrip(" \t\r")
    if not ahead or ahead[0] == "\n" or _MARKER.match(ahead) or _ORGAN.match(ahead):
        return True
    before = text[max(0, at - 40) : at].rstrip()
    if not before or before[-1] in ".!?:;":
        return True
    last = before.rsplit(maxsplit=1)[-1].lower()
    return (
        ahead[0].isupper()
        and not before.endswith((",", "-"))
        and last not in _UNFINISHED
        and (not ahead.startswith("XXXX"))
    )


def _trim(text: str, start: int, end: int, *, headed: bool) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    for mark in (_MARKER, _ORGAN, _MARKER) if headed else (_MARKER,):
        match = mark.match(text, start, end)
        if match and match.end() < end:
            start = match.end()
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if not any(sign.isalnum() for sign in text[start:end]):
        return
    while end - start > LONGEST:
        cut = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
        cut = cut if cut > 0 else start + LONGEST
        yield start, cut
        start = cut + 1 if text[cut : cut + 1] == " " else cut
    if start < end:
        yield start, end
