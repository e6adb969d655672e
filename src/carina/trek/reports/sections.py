"""Raw report text into named sections: headings in any case, on a line of their own or within one, or none at all."""

import re
from typing import Final

from carina.studies.model import Report, ReportSection
from carina.studies.vocabulary import Section

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


def split_sections(text: str) -> Report:
    """The report's sections in reading order, without sentences; text without headings is all findings.

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
