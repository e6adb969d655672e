"""Recommendations: which actions a sentence asks for."""

from carina.trek.reports.observe import Read


def actions_in(read: Read) -> list[str]:
    """The keys of the actions that a sentence recommends, in the order of their words."""
    if not read.advice or read.section not in ("findings", "impression", "recommendation"):
        return []
    if read.text.words and read.text.words[0].text == "no":
        return []
    found = list(
        dict.fromkeys(role.key for item in read.text.items for role in item.roles if role.kind == "action")
    )
    if "reposition device" in found and "follow-up radiograph" in found:
        found.remove("follow-up radiograph")  # A radiograph after repositioning belongs to it.
    if len(found) > 1 and "clinical correlation" in found and not _correlates(read):
        found.remove("clinical correlation")
    return found


def _correlates(read: Read) -> bool:
    """Whether correlation is asked for by name: "if clinically indicated" only qualifies something else."""
    return any(word.text.startswith("correlat") for word in read.text.words)
