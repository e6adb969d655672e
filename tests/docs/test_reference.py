"""The reference names everything that is there, with a meaning."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the documentation's packages are not installed")

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
hooks = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = hooks
spec.loader.exec_module(hooks)

ROOTS = (hooks.Study, hooks.Manifest, hooks.PhantomOptions)
FIELDS = {
    f"{record.__name__}.{field}": (record, field)
    for root in ROOTS
    for record in hooks.records(root)
    for field, _ in hooks.hints(record)
}


def test_every_field_has_a_meaning_written_once() -> None:
    for name, (record, field) in FIELDS.items():
        assert hooks.meaning(record, field), (
            f"{name} has no meaning: write one below it, or in docs/meanings.py"
        )
        assert not (field in hooks.documented(record) and name in hooks.MEANINGS), f"{name} has two meanings"
    assert set(hooks.MEANINGS) <= set(FIELDS), "docs/meanings.py names fields that are gone"


def test_every_command_and_option_is_listed() -> None:
    text = hooks.command_line()
    for command in ("demo", "phantom", "show", "sources"):
        assert f"## carina {command}\n" in text
    for written in (
        "`--seed`",
        "`--finding` `NAME=WEIGHT`",
        "`PATH`",
        "`ID`",
        "Default: `512`",
        "**Required.**",
    ):
        assert written in text


def test_pieces_are_put_in_their_place() -> None:
    page = hooks.on_page_markdown("before\n\n<!-- carina: severity -->\n\nafter")
    assert page.startswith("before\n\n| finding | measure |")
    assert page.endswith("|\n\nafter")
    assert "| cardiomegaly | cardiothoracic ratio | 0.55 | 0.6 |" in page


def test_pages_ask_only_for_pieces_that_exist() -> None:
    asked = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"<!-- carina: (\S+) -->", page.read_text(encoding="utf-8"))
    }
    assert asked == set(hooks.PIECES)
