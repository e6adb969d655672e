"""Every example of the documentation runs and prints what the page says; `make snippets` writes it anew."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SHOWN_ONLY = re.compile(r"(make|git clone|cd) ")
"""Beginnings of lines that may stand in a block that is not run."""


def load(name: str) -> ModuleType:
    """A module of the documentation, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


snippets = load("snippets")
PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in snippets.pages()}
RUN = [name for name, text in PAGES.items() if any(b.language in snippets.RUN for b in snippets.blocks(text))]


@pytest.mark.parametrize("page", RUN)
def test_examples_print_what_the_page_says(page: str) -> None:
    # In a process of its own: what an example registers must not reach other tests.
    command = [sys.executable, ROOT / "docs" / "snippets.py", "--check", ROOT / page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_marked_as_shown_only(page: str) -> None:
    for block in snippets.blocks(PAGES[page]):
        assert block.language in (*snippets.RUN, *snippets.SHOWN)
        if block.language == "sh":
            assert all(SHOWN_ONLY.match(line) for line in block.body.splitlines())


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a  \n", "a", True),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a ... c", "a b c", True),
        ("a", "b", False),
        ("a\n", "a\nb", False),
        ("", "something", False),
    ],
)
def test_output_is_compared_with_dots_for_anything(expected: str, printed: str, same: bool) -> None:
    assert snippets.matches(expected, printed) is same


def test_a_wrong_output_is_found_and_written_anew(tmp_path: Path) -> None:
    page = "```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n4\n```\n\n```console\n$ echo a\nb\n```\n"
    wrong = snippets.run_page(page, tmp_path)
    assert [item.printed for item in wrong] == ["3\n", "$ echo a\na\n"]
    assert snippets.run_page(snippets.updated(page, wrong), tmp_path) == []


def test_an_example_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="exit code 3"):
        snippets.run_page("```console\n$ exit 3\n```\n", tmp_path)
    with pytest.raises(ZeroDivisionError):
        snippets.run_page("```python\n1 / 0\n```\n", tmp_path)
