"""The frame of every page: head, colours for light, dark and print, top bar, footer and scripts.

A page is one HTML file that opens from disk without a network. Its content security policy allows only the scripts
that the frame put there and images that the page itself holds. Report text comes from outside, so templates are filled
with escaping on.

    html = render_page("case.html.j2", values, title=case.id, styles=("case.css",), scripts=("answers.js",))
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

PACKAGE: Final = "carina.pages"
SCRIPT: Final = "frame.js"
"""On every page, before the page's own scripts."""

COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "bg": ("#f3f4f6", "#111316"),
    "surface": ("#ffffff", "#191c20"),
    "ink": ("#1a1e23", "#e4e8ec"),
    "quiet": ("#56606b", "#9aa3ad"),
    "line": ("#dadee3", "#2c3138"),
    "accent": ("#00609a", "#6fc0f0"),
    "lit": ("#fdf0c4", "#3d3614"),
    "present": ("#c04f00", "#f08a3c"),
    "uncertain": ("#9c3f74", "#e39cc3"),
    "absent": ("#00609a", "#6fc0f0"),
    "right": ("#00724f", "#5fd0a6"),
    "right-bg": ("#e3f4ed", "#14322a"),
    "wrong": ("#b3261e", "#ff9a8f"),
    "warn": ("#8a5a00", "#e5b454"),
    "bar": ("#7aa6c8", "#3f7096"),
    # Radiographs are read on a dark ground in any theme.
    "panel": ("#0c0e11", "#0c0e11"),
    "panel-2": ("#171a1e", "#171a1e"),
    "panel-ink": ("#d5dbe1", "#d5dbe1"),
    "panel-quiet": ("#9aa3ad", "#9aa3ad"),
    "panel-line": ("#2b3037", "#2b3037"),
}
"""CSS variables of every page, without the leading dashes: the colour in light and in print, and the colour in dark."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What the frame's template needs besides the values of the page."""

    title: str
    colours: Markup
    styles: tuple[str, ...]
    scripts: tuple[Markup, ...]
    policy: str


def render_page(
    template: str,
    values: Mapping[str, object],
    *,
    title: str,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    packages: Sequence[str] = (),
    colours: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """Fill a template that extends `frame.html.j2`, and return the whole page as HTML.

    Args:
        template: Name of the template.
        values: What the template is filled with; `frame` is taken.
        title: Title of the browser tab, before "· Carina".
        styles: Names of style sheets, after those of the frame. They are templates too.
        scripts: Names of scripts, run after the page is read. They are not templates: pass data in the page, as
            `<script type="application/json">` or as attributes.
        packages: Python packages whose `templates` folders are searched before that of `carina.pages`.
        colours: Further CSS variables, as in `COLOURS`.
    """
    environment = template_environment(tuple(packages))
    texts = [_script(environment, name) for name in (SCRIPT, *scripts)]
    frame = Frame(
        title=title,
        colours=colour_rules(colours),
        styles=tuple(styles),
        scripts=tuple(Markup(text) for text in texts),  # noqa: S704 - scripts of this package
        policy=security_policy(texts),
    )
    return environment.get_template(template).render({**values, "frame": frame})


@lru_cache(maxsize=8)
def template_environment(packages: tuple[str, ...] = ()) -> Environment:
    """Templates of these packages, then those of `carina.pages`; text is escaped, an unknown variable is an error."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def colour_rules(more: Mapping[str, tuple[str, str]] | None = None) -> Markup:
    """CSS that sets the variables: light, dark where the reader prefers or chose it, and light in print."""
    every = {**COLOURS, **(more or {})}
    light, dark = (" ".join(f"--{name}: {both[place]};" for name, both in every.items()) for place in (0, 1))
    rules = (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        ":root[data-theme=light] { color-scheme: light; }\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
        "@media print { :root, :root[data-theme=dark], :root:not([data-theme=light]) "
        f"{{ color-scheme: light; {light} --bg: #ffffff; }} }}"
    )
    return Markup(rules)  # noqa: S704 - colours of this package


def security_policy(scripts: Sequence[str]) -> str:
    """A content security policy for one page: its own scripts by their hashes, its own images, no network."""
    digests = (base64.b64encode(sha256(text.encode()).digest()).decode("ascii") for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _script(environment: Environment, name: str) -> str:
    """A script as it stands in the page, within its own lines."""
    assert environment.loader is not None  # noqa: S101 - made above
    text, _, _ = environment.loader.get_source(environment, name)
    return f"\n{text.strip()}\n"
