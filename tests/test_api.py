"""`import carina`: the verbs, their defaults, and how quickly they are there."""

import inspect
import re
import subprocess
import sys
from enum import Enum
from pathlib import PurePath

import pytest
import typer

import carina
from carina.cli import app
from carina.store.results import Result

VERBS = {
    "audit": "audit",
    "build ground": "build_ground",
    "build percept": "build_percept",
    "build trek": "build_trek",
    "check": "check",
    "compare-profiles": "compare_profiles",
    "convert-checkpoint": "convert_checkpoint",
    "convert-pickles": "convert_pickles",
    "demo": "demo",
    "explain": "explain",
    "phantom": "make_phantoms",
    "report": "report",
    "run": "run",
    "score-maps": "score_maps",
    "show": "show",
}
"""Commands with options of their own, and the function that each of them is."""
LISTED = {"export": "export", "sources": "list_sources", "list-metrics": "list_metrics"}
"""Commands whose options come from a registry, or that only list."""
RENAMED = {
    "target": "targets",
    "gate": "gates",
    "variant": "variants",
    "option": "options",
    "check": "checks",
    "check_option": "check_options",
    "bench": "benchmarks",
    "finding": "findings",
    "device": "devices",
    "id_": "id",
}
"""An option that may be repeated is one keyword in the plural; a name of Python's own has an underscore."""
ONLY_ON_THE_COMMAND_LINE = {
    "json",
    "open_",
    "strict",
    "max_failures",
    "estimate",
    "price_in",
    "price_out",
    "help",
}
"""How a command prints, ends or opens its result."""


def commands():
    found = {}

    def walk(command, words):
        inner = getattr(command, "commands", None)
        if inner is None:
            found[" ".join(words)] = command
            return
        for name, child in inner.items():
            walk(child, (*words, name))

    walk(typer.main.get_command(app), ())
    return found


COMMANDS = commands()


def _plain(default):
    return str(default) if isinstance(default, PurePath) else default or None


def test_every_command_is_a_public_function():
    sources = {name for name in COMMANDS if name.startswith("import ")}
    assert set(COMMANDS) - sources - {"import"} == set(VERBS) | set(LISTED)
    for name in {*VERBS.values(), *LISTED.values()}:
        assert name in carina.__all__
        assert callable(getattr(carina, name))


@pytest.mark.parametrize("command", sorted(VERBS))
def test_options_and_defaults_are_the_same_through_both_doors(command):
    function = inspect.signature(getattr(carina, VERBS[command])).parameters
    for option in COMMANDS[command].params:
        name = option.name
        if name in ONLY_ON_THE_COMMAND_LINE or option.required:
            continue
        keyword = name if name in function else RENAMED.get(name, name)
        assert keyword in function, f"{command}: --{name} has no keyword in carina.{VERBS[command]}"
        default = option.default() if callable(option.default) else option.default
        default = default.value if isinstance(default, Enum) else default
        expected = function[keyword].default
        if expected is inspect.Parameter.empty:
            continue
        assert _plain(default) == _plain(expected), f"{command}: --{name}"


@pytest.mark.parametrize("name", [name for name in carina.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name):
    documented = inspect.getdoc(getattr(carina, name))
    assert documented
    if inspect.isfunction(getattr(carina, name)):
        assert (
            re.search(r"^Args:$", documented, re.MULTILINE)
            or not inspect.signature(getattr(carina, name)).parameters
        )
        assert re.search(r"^Returns:$", documented, re.MULTILINE)


def test_results_have_a_path_a_table_and_a_form_for_notebooks():
    for name in ("Benchmark", "MapRun", "Pages", "Report", "Run", "Studies"):
        assert issubclass(getattr(carina, name), Result)


def test_import_loads_nothing_and_dir_lists_the_public_names():
    code = (
        "import sys, carina\n"
        "heavy = [m for m in ('numpy', 'pyarrow', 'polars', 'torch', 'matplotlib', 'typer') if m in sys.modules]\n"
        "print(heavy, 'run' in dir(carina), carina.CarinaError.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] True CarinaError"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = carina.nonsense
