"""What the documentation takes from the code, so that it cannot go stale.

A page asks for a piece with a line `<!-- carina: NAME -->`; `PIECES` lists the names. `<!-- carina: api MODULE -->`
asks for the public names of a module, or for a function or class. The piece follows in the page itself, up to a line
`<!-- end -->`, so that the page is complete wherever it is read:

    python docs/hooks.py          writes all pieces into the pages anew
    python docs/hooks.py --check  lists pages with other pieces; exit code 1 where there are any

mkdocs fills the pages in the same way when it builds the site, and tests/docs compares them.
"""

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import typer

from carina import cases
from carina.cases import Case
from carina.cases.facts import fact_fields
from carina.cases.protocol import PROTOCOLS, ProtocolInfo
from carina.cli import app
from carina.percept import LESIONS, PerceptBuildReport, Rules
from carina.percept.lesions import Lesion
from carina.percept.rules import Band
from carina.phantom import Mix, PhantomOptions
from carina.phantom.truth import SEVERITY
from carina.studies import Manifest, Region, Study, vocabulary
from carina.studies.lookalikes import LOOKS_LIKE, MAY_BE_CALLED
from carina.studies.terms import (
    NO_FINDING_LABELS,
    Term,
    is_no_finding,
    list_data_sets,
    list_statements,
    list_terms,
    map_labels,
)

sys.path.insert(0, str(Path(__file__).parent))
from api_pages import describe_api
from meanings import MEANINGS

_MARK = re.compile(
    r"^<!-- carina: ([a-z-]+)(?: ([\w.]+))? -->\n(?:(?:(?!^<!-- carina:).)*?^<!-- end -->$\n?)?",
    re.MULTILINE | re.DOTALL,
)
DOCS = Path(__file__).parent


def fill_page(markdown: str) -> str:
    """A page with the pieces that it asks for."""
    return _MARK.sub(_fill, markdown)


def _fill(mark: re.Match[str]) -> str:
    name, about = mark.groups()
    piece = PIECES[name]() if about is None else describe_api(about)
    return f"<!-- carina: {' '.join(filter(None, (name, about)))} -->\n\n{piece.strip()}\n\n<!-- end -->\n"


def on_page_markdown(markdown: str, **_: object) -> str:
    """What mkdocs calls for every page."""
    return fill_page(markdown)


def main() -> None:
    stale = {
        path: filled
        for path in sorted(DOCS.rglob("*.md"))
        if (filled := fill_page(text := path.read_text(encoding="utf-8"))) != text
    }
    for path, filled in stale.items():
        print(path.relative_to(DOCS.parent))
        if "--check" not in sys.argv:
            path.write_text(filled, encoding="utf-8")
    sys.exit(int("--check" in sys.argv and bool(stale)))


# ---- the command line ----


def command_line() -> str:
    """Every command: what it does, examples, arguments and options."""
    return "\n\n".join(_command(name, command) for name, command in _commands().items())


def _commands() -> dict[str, Any]:
    """Commands by their words: "show", "build percept"."""
    return dict(_leaves(typer.main.get_command(app), ()))


def _leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - private to typer
    if not hasattr(command, "list_commands"):
        # A command whose options depend on the value of another lists itself with each of these values.
        for name, found in getattr(command, "variants", lambda: {"": command})().items():
            yield " ".join(filter(None, (*words, name))), found
        return
    for name in command.list_commands(None):
        yield from _leaves(command.get_command(None, name), (*words, name))


def _command(name: str, command: Any) -> str:  # noqa: ANN401
    prose, *lists = inspect.cleandoc(command.help).split("\b\n")
    rows = [f"| {_written(param)} | {_meaning(param)} |" for param in command.params]
    return "\n".join(
        [
            f"## carina {name}",
            "",
            prose.strip(),
            "",
            *(_listed(text) for text in lists),
            "| option or argument | meaning |",
            "|---|---|",
            *rows,
            "| `-h`, `--help` | Show the same on the terminal. |",
        ]
    )


def _listed(text: str) -> str:
    """A list of the help: its title unless that is "Examples", and its lines as they stand."""
    title, _, lines = text.strip().partition("\n")
    block = f"```text\n{textwrap.dedent(lines).strip()}\n```\n"
    return block if title == "Examples:" else f"{title}\n\n{block}"


def _written(param: Any) -> str:  # noqa: ANN401
    if param.param_type_name == "argument":
        return f"`{param.metavar or param.name.upper()}{'' if param.nargs == 1 else '...'}`"
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    return f"{names} `{param.metavar}`" if param.metavar else names


def _meaning(param: Any) -> str:  # noqa: ANN401
    help_text = _cell(param.help or "")
    if param.required:
        return f"{help_text} **Required.**"
    if param.default is None or param.default is False or param.default == ():
        return help_text
    return f"{help_text} Default: `{param.default}`."


# ---- records ----


def columns() -> str:
    """Every record of a study set, field by field, from the study down."""
    return "\n\n".join(_record(record) for record in records(Study))


def manifest() -> str:
    """The fields of `studies.json`."""
    return "\n\n".join(_record(record) for record in records(Manifest))


def case_columns() -> str:
    """Every record of a benchmark, field by field, from the case down."""
    return "\n\n".join(_record(record) for record in records(Case))


def bench_manifest() -> str:
    """The fields of `bench.json`."""
    return "\n\n".join(_record(record) for record in records(cases.Manifest))


def build_report() -> str:
    """The fields of `build.json`."""
    return "\n\n".join(_record(record) for record in records(PerceptBuildReport))


def facts() -> str:
    """What each protocol declares for the facts of its cases and steps."""
    return "\n\n".join(_facts(PROTOCOLS[name]) for name in PROTOCOLS)


def _facts(protocol: ProtocolInfo) -> str:
    parts = [f"### {protocol.name}"]
    for holder, record in (("case", protocol.case_facts), ("step", protocol.step_facts)):
        declared = fact_fields(record)
        if not declared:
            continue
        rows = [
            f"| `{fact.name}` | `{fact.path}` | {fact.form} | {_cell(meaning(fact.owner, fact.attribute) or '')} |"
            for fact in declared
        ]
        head = [f"Of a {holder}: `{record.__module__}.{record.__name__}`.", ""]
        parts.append(
            "\n".join([*head, "| stored name | field | value | meaning |", "|---|---|---|---|", *rows])
        )
    return "\n\n".join(parts)


def rules() -> str:
    """The acceptance rules of percept with their defaults."""
    return _record(Rules, defaults=True)


def lesions() -> str:
    """The lesions of percept: what studies call them, and what excludes them."""

    def named(lesion: Lesion, table: Mapping[str, frozenset[str]]) -> str:
        return ", ".join(sorted(table.get(lesion.finding, ()))) or "none"

    rows = [
        f"| `{name}` | {lesion.finding} | {named(lesion, LOOKS_LIKE)} "
        f"| {named(lesion, MAY_BE_CALLED)} | {'lung fields' if lesion.in_lungs else 'thorax'} |"
        for name, lesion in LESIONS.items()
    ]
    heads = (
        "`--target`",
        "finding of the study",
        "not asked about if one of these is present",
        "not called absent if one of these is present either",
        "contour stays within",
    )
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows])


def options() -> str:
    """The options of a phantom set with their defaults."""
    return "\n\n".join(_record(record, defaults=True) for record in (PhantomOptions, Mix))


def records(root: type) -> Iterator[type]:
    """A record and all that it is made of, each once, in reading order."""
    seen: list[type] = []
    waiting = [root]
    while waiting:
        record = waiting.pop(0)
        if record not in seen:
            seen.append(record)
            waiting += [inner for _, kind in hints(record) for inner in _inner(kind)]
    return iter(seen)


def hints(record: type) -> list[tuple[str, Any]]:
    """Fields of a record with their types."""
    return [(field.name, field.type) for field in msgspec.structs.fields(record)]


def _inner(kind: Any) -> list[type]:  # noqa: ANN401
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [found for argument in get_args(kind) for found in _inner(argument)]


def meaning(record: type, field: str) -> str | None:
    """What is written below a field in the code, else beside this file."""
    owner = owner_of(record, field)
    return documented(owner).get(field) or MEANINGS.get(f"{full_name(owner)}.{field}")


def owner_of(record: type, field: str) -> type:
    """The class of a record's family that declares a field."""
    return next(kind for kind in record.__mro__ if field in vars(kind).get("__annotations__", {}))


def full_name(record: type) -> str:
    """Package and class, since study sets and benchmarks both have counts: "cases.Counts"."""
    return f"{record.__module__.split('.')[1]}.{record.__name__}"


def documented(record: type) -> dict[str, str]:
    """The strings written below the fields of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _record(record: type, *, defaults: bool = False) -> str:
    intro = "" if record is Region else inspect.getdoc(record) or ""
    heads = ("field", "type", "default", "meaning") if defaults else ("field", "type", "meaning")
    lines = [f"### {record.__name__}", "", intro, "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    fields = {field.name: field for field in msgspec.structs.fields(record)}
    for name, kind in hints(record):
        cells = [f"`{name}`", _type(kind), _cell(meaning(record, name) or "")]
        if defaults:
            cells.insert(2, _default(fields[name]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
        return "<br>".join(f"{name} {share:g}" for name, share in value.items())
    if isinstance(field.default, Band):
        return f"{field.default.low:g} to {field.default.high:g}"
    return "see below" if isinstance(field.default, msgspec.Struct) else f"`{field.default}`"


_SCALARS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "anything",
    Band: "range in which nothing is decided",
}


def _type(kind: Any) -> str:  # noqa: ANN401
    """A type in words: "list of Image", "text or null"."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return f"{_type(next(a for a in arguments if a is not type(None)))} or null"
    if origin is Literal:
        return " / ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        count = "list" if arguments[-1] is Ellipsis else str(len(arguments))
        return f"{count} of {_type(arguments[0])}"
    if origin is dict:
        return f"{_type(arguments[1])} by name"
    if kind not in _SCALARS and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return _SCALARS.get(kind) or getattr(kind, "__name__", str(kind))


# ---- words and bounds ----


def words() -> str:
    """The names that everything in Carina shares."""
    rows = {
        "findings": vocabulary.FINDINGS,
        "devices": vocabulary.DEVICES,
        "zones": vocabulary.ZONES,
        "parts of the lungs": (*vocabulary.LUNG_PARTS, *vocabulary.COSTOPHRENIC_ANGLES),
        "report sections": vocabulary.SECTIONS,
    }
    return "\n".join(
        [
            "| what | names |",
            "|---|---|",
            *(f"| {what} | {', '.join(names)} |" for what, names in rows.items()),
        ]
    )


def terms() -> str:
    """The hierarchy of findings, devices and anatomy; what has several parents stands below each of them."""
    titles = {"finding": "Findings", "device": "Devices", "anatomy": "Anatomy"}
    return "\n\n".join(
        "\n".join([f"## {title}", "", *_tree(list_terms(kind))]) for kind, title in titles.items()
    )


def _tree(known: tuple[Term, ...], parent: str | None = None, depth: int = 0) -> Iterator[str]:
    """A nested list of what is below a parent; of what has no parent, and everything below it, for None."""
    for term in known:
        if (parent in term.parents) if parent else not term.parents:
            others = f": {', '.join(term.synonyms)}" if term.synonyms else ""
            yield f"{'    ' * depth}- **{term.name}**{others}"
            yield from _tree(known, term.name, depth + 1)


def labels() -> str:
    """The labels of data sets, with the names that they mean."""
    rows = []
    for data_set in list_data_sets():
        named: dict[str, list[str]] = {}
        for label, term in map_labels(data_set).items():
            meaning = term.name if term else "*no finding*" if is_no_finding(label) else "*a statement*"
            named.setdefault(meaning, []).append(label)
        meanings = [_label_meaning(meaning, spelled) for meaning, spelled in named.items()]
        rows.append(f"| `{data_set}` | {'; '.join(meanings)} |")
    statements = [f"| {label} | {meaning} |" for label, meaning in list_statements().items()]
    return "\n".join(
        [
            "| data set | its labels, with the names that they mean where these differ |",
            "|---|---|",
            *rows,
            "",
            f"Nothing was found: {', '.join(NO_FINDING_LABELS)}.",
            "",
            "| statement | meaning |",
            "|---|---|",
            *statements,
        ]
    )


def _label_meaning(meaning: str, spelled: list[str]) -> str:
    is_the_same = len(spelled) == 1 and spelled[0].lower() == meaning.lower()
    return spelled[0] if is_the_same else f"{', '.join(spelled)} = {meaning}"


def severity() -> str:
    """From which value on a finding is moderate or severe."""
    rows = [
        f"| {name} | {measure} | {moderate:g} | {severe:g} |"
        for name, (measure, moderate, severe) in SEVERITY.items()
    ]
    return "\n".join(["| finding | measure | moderate from | severe from |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    """One line that a table can hold."""
    return " ".join(text.split()).replace("|", "\\|")


PIECES: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "columns": columns,
    "manifest": manifest,
    "case-columns": case_columns,
    "bench-manifest": bench_manifest,
    "build-report": build_report,
    "facts": facts,
    "rules": rules,
    "lesions": lesions,
    "options": options,
    "words": words,
    "severity": severity,
    "terms": terms,
    "labels": labels,
}


if __name__ == "__main__":
    main()
