"""The page templates: filled with escaping on, because report text comes from outside."""

from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("carina.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fill(name: str, values: dict[str, object]) -> str:
    """A template of this package with its values, as a whole page."""
    return _environment().get_template(name).render(values)
