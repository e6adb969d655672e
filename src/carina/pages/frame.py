"""The frame of every page: head, colours for light, dark and print, top bar, footer and scripts.

A page is one HTML file that opens from disk without a network. Its content security policy allows only the scripts
and the style sheet that the frame put there and images that the page itself holds. Report text comes from outside, so
templates are filled with escaping on.

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
STYLE: Final = "frame.css"
"""On every page, before the page's own style sheets."""

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
    style: Markup
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
        styles: Names of style sheets, after those of the frame.
        scripts: Names of scripts, run after the page is read. Neither they nor the style sheets are templates: pass
            data in the page, as `<script type="application/json">` or as attributes.
        packages: Python packages whose `templates` folders are searched before that of `carina.pages`.
        colours: Further CSS variables, as in `COLOURS`.
    """
    environment = template_environment(tuple(packages))
    texts = [f"\n{_source(environment, name).strip()}\n" for name in (SCRIPT, *scripts)]
    sheets = "".join(_source(environment, name).removesuffix("\n") for name in (STYLE, *styles))
    style = f"\n{colour_rules(colours)}\n{sheets}\n"
    frame = Frame(
        title=title,
        style=Markup(style),  # noqa: S704 - style sheets of this package
        scripts=tuple(Markup(text) for text in texts),  # noqa: S704 - scripts of this package
        policy=security_policy(texts, style),
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


def security_policy(scripts: Sequence[str], style: str) -> str:
    """A content security policy for one page: its own scripts, style sheet and images, and no network.

    Scripts and the style sheet are allowed by the hashes of their texts, so that nothing that a report, an answer or a
    file name holds can become one of them. Style attributes are allowed, because every bar, box and outline has a
    position or a colour of its own, and a policy would have to list each; they can load nothing, for the policy allows
    no address. Browsers that do not know rules for attributes apart use `style-src`.

    Args:
        scripts: The texts of the script elements.
        style: The text of the style element.
    """
    allowed = " ".join(map(_source_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        f"style-src-elem {_source_hash(style)}; style-src-attr 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _source_hash(text: str) -> str:
    """The expression of a policy that allows an element with exactly this text."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode('ascii')}'"


def _source(environment: Environment, name: str) -> str:
    """A script or a style sheet, as it stands in its file."""
    assert environment.loader is not None  # noqa: S101 - made above
    text, _, _ = environment.loader.get_source(environment, name)
    return text
