"""Counts in messages and on pages."""


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun.

    Example:
        >>> format_count(1, "step"), format_count(3, "step"), format_count(2, "study", "studies")
        ('1 step', '3 steps', '2 studies')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
