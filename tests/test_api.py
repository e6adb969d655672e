"""`import carina`: the verbs, their defaults, and how quickly they are there."""

import inspect
import re
import shutil
import subprocess
import sys
from enum import Enum
from pathlib import PurePath

import pytest
import typer

import carina
from carina.cli import app
from carina.store.errors import CarinaError
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
    "label": "labels",
    "device": "devices",
    "id_": "id",
}
"""An option that may be repeated is one keyword in the plural; a name of Python's own has an underscore."""
ONLY_ON_THE_COMMAND_LINE = {
    "all_",
    "json",
    "open_",
    "strict",
    "max_failures",
    "estimate",
    "show_prompt",
    "case",
    "price_in",
    "price_out",
    "help",
    "format_",
}
"""How a command prints, ends or opens its result, and in which form it writes it."""


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
    if isinstance(default, list) and len(default) == 1:  # of an option that may be repeated
        default = default[0]
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
    for name in ("Benchmark", "MapRun", "Pages", "Report", "Run", "RunSet", "Studies"):
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A few studies, benchmarks and a run."""
    top = tmp_path_factory.mktemp("api")
    studies = carina.make_phantoms(top / "studies", n=12, seed=3, size=64, workers=1)
    bench = carina.build_trek(studies, top / "bench", workers=1)
    probes = carina.build_ground(studies, top / "probes", workers=1)
    return studies, bench, probes, top


def test_a_selection_is_never_taken_for_the_whole_set(made, tmp_path):
    studies, bench, probes, _ = (
        view if isinstance(view, PurePath) else view.where(split="test") for view in made
    )
    out = tmp_path / "out"
    for call in (
        lambda: carina.run(bench, "builtin/random", out),
        lambda: carina.estimate(bench, "openai/gpt-5"),
        lambda: carina.export(bench, out, to="chat"),
        lambda: carina.audit(bench, out),
        lambda: carina.explain(probes, "builtin/asymmetry", out),
        lambda: carina.build_percept(studies, out),
        lambda: carina.build_trek(studies, out),
        lambda: carina.build_ground(studies, out),
    ):
        with pytest.raises(CarinaError, match=r"where=.*split"):
            call()
        assert not out.exists()


def test_a_set_that_was_opened_with_other_images_is_used_with_them(made, tmp_path):
    _, bench, _, top = made
    moved = tmp_path / "moved"
    shutil.copytree(bench.path, moved)
    opened = carina.open_benchmark(moved, images=top / "studies")
    answered = carina.run(opened, "builtin/reader", tmp_path / "run", limit=2)
    assert answered.failures == ()
    assert carina.export(opened, tmp_path / "chat", to="chat").path.is_dir()


def test_results_can_be_read_after_the_working_directory_has_changed(made, tmp_path, monkeypatch):
    _, bench, probes, _ = made
    monkeypatch.chdir(tmp_path)
    answered = carina.run(bench, "builtin/random", "run", limit=1)
    maps = carina.explain(probes, "builtin/asymmetry", "maps", limit=2, workers=1)
    monkeypatch.chdir("/")
    assert answered.to_frame().height > 0
    assert maps.to_frame().height > 0


def test_a_model_that_the_script_registers_runs_in_one_process(made, tmp_path):
    _, bench, _, _ = made
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, carina\n"
        "from carina.models import model_kind\n"
        "from carina.runs.builtin.oracle import Oracle\n"
        "@model_kind('mine', capabilities=['chat'])\n"
        "def open_mine(name, options):\n"
        "    return Oracle(options.benchmark)\n"
        "for processes in (1, 2):\n"
        "    try:\n"
        "        print(carina.run(sys.argv[1], 'mine:x', 'run', limit=1, processes=processes).counts.cases)\n"
        "    except carina.CarinaError as error:\n"
        "        print(error)\n"
    )
    command = [sys.executable, script, bench.path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    first, second = done.stdout.splitlines()
    assert first == "1", done.stderr
    assert "'mine' is registered by the running script" in second
