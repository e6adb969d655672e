"""Small modules of the store are cheap to import, so that commands and help are quick."""

import subprocess
import sys

import pytest

import carina.store

HEAVY = {"numpy", "pyarrow", "polars", "cv2", "duckdb"}


def loaded(statement: str) -> set[str]:
    """Heavy packages that a statement imports in a fresh process."""
    run = f"import sys; {statement}; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout
    return HEAVY & set(printed.split())


@pytest.mark.parametrize(
    "module", ["errors", "files", "layout", "log", "registry", "results", "resume", "workers"]
)
def test_a_small_module_loads_no_heavy_package(module):
    assert loaded(f"import carina.store.{module}") == set()


def test_the_command_line_loads_no_heavy_package():
    assert loaded("import carina, carina.cli") == set()


def test_every_public_name_of_the_store_is_found():
    for name in carina.store.__all__:
        assert getattr(carina.store, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        carina.store.nothing  # noqa: B018 - looked up for its error
