"""The registry that sources, protocols, models, methods, metrics and exports share."""

import sys
from importlib import import_module
from importlib.metadata import EntryPoint

import pytest

from carina.cases.protocol import PROTOCOLS, stage_title
from carina.store import registry
from carina.store.errors import CarinaError
from carina.store.registry import Registry


@pytest.fixture
def colours(tmp_path, monkeypatch):
    package = tmp_path / "palette_of_test"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from carina.store.registry import Registry\n"
        "COLOURS = Registry('colour', group='test.colours', package=__name__)\n"
    )
    (package / "deep_blue.py").write_text(
        "from palette_of_test import COLOURS\nCOLOURS.register('deep-blue', 1)\nCOLOURS.register('navy', 2)\n"
    )
    (package / "red.py").write_text("from palette_of_test import COLOURS\nCOLOURS.register('red', 3)\n")
    (package / "_private.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in __import__("sys").modules if name.startswith("palette_of_test")]:
        monkeypatch.delitem(__import__("sys").modules, name)
    import palette_of_test

    return palette_of_test.COLOURS


def test_a_lookup_imports_only_the_module_of_that_name(colours):
    import sys

    assert colours["deep-blue"] == 1
    assert "palette_of_test.red" not in sys.modules


def test_a_name_that_no_module_has_is_found_among_all(colours):
    assert colours["navy"] == 2
    assert colours.names() == ("deep-blue", "navy", "red")
    assert colours.entries() == {"deep-blue": 1, "navy": 2, "red": 3}
    assert "red" in colours
    assert "green" not in colours


def test_an_unknown_name_lists_the_known_ones_and_the_closest(colours):
    with pytest.raises(CarinaError, match=r"colour 'rad'.*'red'.*deep-blue, navy, red"):
        colours["rad"]


def test_two_different_entries_of_one_name_are_refused():
    things = Registry("thing", group="test.things")
    things.register("one", object())
    with pytest.raises(ValueError, match="'one'"):
        things.register("one", object())


def test_another_package_adds_entries_through_entry_points(monkeypatch):
    points = [EntryPoint("green", "fractions:Fraction", "test.colours")]
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
    colours = Registry("colour", group="test.colours")
    assert colours["green"].__name__ == "Fraction"


def test_every_protocol_declares_titles_for_its_stages():
    # Sources of questions, where they are loaded, declare others.
    assert {"ground", "percept", "trek"} <= set(PROTOCOLS.names())
    assert stage_title("trek", 5) == "Comparison"
    assert stage_title("somebody's", 5) == "Stage 5"


def test_looking_up_an_own_entry_loads_no_other_package(monkeypatch):
    """Another package imports Carina, so loading it while Carina is being imported would be circular."""
    monkeypatch.setattr(registry, "entry_points", lambda group: pytest.fail(f"loads {group}"))
    things = Registry("thing", group="test.things")
    things.register("one", 1)
    assert things["one"] == 1
    assert "one" in things


def test_a_package_that_cannot_be_loaded_is_named_and_leaves_the_others(monkeypatch):
    points = [
        EntryPoint("broken", "fractions:NoSuchThing", "test.colours"),
        EntryPoint("green", "fractions:Fraction", "test.colours"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
    colours = Registry("colour", group="test.colours")
    with pytest.warns(RuntimeWarning, match="colour 'broken' of package 'fractions'.*NoSuchThing"):
        assert colours.names() == ("green",)
    with pytest.raises(CarinaError, match=r"unknown colour 'broken'.*cannot be loaded"):
        colours["broken"]


@pytest.fixture
def announce(tmp_path, monkeypatch):
    """Writes a module of another package and announces entry points to it, by name and value."""
    monkeypatch.syspath_prepend(tmp_path)

    def announce(code, **values):
        module = next(iter(values.values())).partition(":")[0]
        (tmp_path / f"{module}.py").write_text(code)
        monkeypatch.delitem(sys.modules, module, raising=False)
        points = [EntryPoint(name, value, "test.colours") for name, value in values.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])

    return announce


def test_an_entry_of_another_type_is_refused():
    with pytest.raises(TypeError, match=r"colour 'red': expected an object of int, found str"):
        Registry("colour", group="test.colours", entry_type=int).register("red", "ff0000")


def test_an_object_of_another_type_is_named_and_leaves_the_others(announce):
    announce("thing = 'x'\ngreen = 3\n", red="wrong_type_of_test:thing", green="wrong_type_of_test:green")
    colours = Registry("colour", group="test.colours", entry_type=int)
    with pytest.warns(
        RuntimeWarning, match=r"'red' of package 'wrong_type_of_test'.*object of int, found str"
    ):
        assert colours.entries() == {"green": 3}


def test_a_module_that_exits_when_it_is_imported_does_not_end_the_program(announce):
    announce("import sys\nsys.exit(3)\n", red="exits_of_test")
    colours = Registry("colour", group="test.colours")
    with pytest.warns(
        RuntimeWarning, match=r"'red' of package 'exits_of_test' cannot be loaded: SystemExit\(3\)"
    ):
        assert colours.names() == ()


def test_an_object_named_like_an_entry_of_carina_is_ignored_with_a_warning(announce):
    announce("thing = 4\n", red="same_name_of_test:thing")
    colours = Registry("colour", group="test.colours", entry_type=int)
    colours.register("red", 3)
    with pytest.warns(
        RuntimeWarning, match=r"'red' of package 'same_name_of_test' is ignored: another colour"
    ):
        assert colours.entries() == {"red": 3}


@pytest.mark.filterwarnings("error")
def test_an_announced_function_that_a_decorator_registers_is_no_conflict(announce, monkeypatch):
    colours = Registry("colour", group="test.colours", entry_type=int)
    monkeypatch.setattr(registry, "COLOURS", colours, raising=False)
    announce(
        "from carina.store.registry import COLOURS\n"
        "COLOURS.register('red', 3)\nCOLOURS.register('blue', 4)\n"
        "def red(): pass\ndef blue(): pass\n",
        red="decorated_of_test:red",
        blue="decorated_of_test:blue",
    )
    assert colours.entries() == {"blue": 4, "red": 3}


@pytest.mark.parametrize(
    "name", ["EXPORTS", "GATES", "LAYOUTS", "METHODS", "METRICS", "MODELS", "PROTOCOLS", "SOURCES"]
)
def test_every_registry_states_the_type_of_its_entries(name):
    modules = {
        "EXPORTS": "carina.exports",
        "GATES": "carina.audits.gate",
        "LAYOUTS": "carina.store.layout",
        "METHODS": "carina.explanations.methods",
        "METRICS": "carina.maps.metrics",
        "MODELS": "carina.models.registry",
        "PROTOCOLS": "carina.cases.protocol",
        "SOURCES": "carina.sources",
    }
    entries = getattr(import_module(modules[name]), name)
    with pytest.raises(TypeError, match="expected an object of"):
        entries.register("of-test", 42)
