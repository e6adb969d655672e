"""The reference names everything that is there, with a meaning."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the documentation's packages are not installed")

from carina.runs.records import RunInfo, StepRow

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
hooks = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = hooks
spec.loader.exec_module(hooks)

STORED = (hooks.Study, hooks.Manifest, hooks.Case, hooks.cases.Manifest, hooks.PerceptBuildReport)
RECORDS = [record for root in (*STORED, hooks.PhantomOptions) for record in hooks.records(root)]
FIELDS = {
    f"{hooks.full_name(owner)}.{field}": (owner, field)
    for record in (*RECORDS, hooks.Rules)
    for field, _ in hooks.hints(record)
    for owner in (hooks.owner_of(record, field),)
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
    commands = (
        "demo",
        "phantom",
        "show",
        "sources",
        "build percept",
        "import chexpercept",
        "import swift-chat",
        "export",
        "export --to chat",
        "audit",
        "check",
        "run",
        "report",
    )
    for command in commands:
        assert f"## carina {command}\n" in text
    for written in (
        "`--seed`",
        "`--finding` `NAME=WEIGHT`",
        "`PATH`",
        "`ID`",
        "Default: `512`",
        "Default: `0`",
        "**Required.**",
    ):
        assert written in text


def test_every_column_of_a_run_is_named() -> None:
    page = (ROOT / "docs" / "reference" / "run.md").read_text(encoding="utf-8")
    for record in (StepRow, RunInfo):
        for field in record.__struct_fields__:
            assert f"`{field}`" in page, f"{record.__name__}.{field}"


def test_lists_of_the_help_stand_apart() -> None:
    text = hooks.command_line()
    assert "\b" not in text
    assert "Lesions:\n\n```text\ncardiomegaly, " in text
    assert "```text\ncarina build percept studies -o bench --per-cell 10\n" in text


def test_a_benchmark_is_described_from_the_case_down() -> None:
    text = hooks.case_columns()
    for record in ("Case", "Step", "Key", "Fact", "CaseView", "Mark", "Region"):
        assert f"### {record}\n" in text
    assert "| `options` | list of [Option](#option) | " in text
    assert (
        "| `counts` | [Counts](#counts) | Numbers of cases, questions and patients. |"
        in hooks.bench_manifest()
    )
    assert "| `reasons` | whole number by name | " in hooks.build_report()


def test_the_rules_are_listed_with_their_defaults() -> None:
    text, rules = hooks.rules(), hooks.Rules()
    assert f"| `point_gap` | number | `{rules.point_gap}` | " in text
    assert f"| {rules.region.low:g} to {rules.region.high:g} | " in text
    assert all(f"| `{name}` |" in text for name in rules.__struct_fields__)


def test_the_explanation_speaks_of_the_rules_as_they_are() -> None:
    page = (ROOT / "docs" / "explanation" / "percept.md").read_text(encoding="utf-8")
    rules = hooks.Rules()
    for written in (
        f"overlaps the truth by {rules.revise_low:g} to {rules.revise_high:g}, a good one by {rules.good_iou:g} or",
        f"IoU {rules.good_iou:g} or more",
        f"{rules.min_points} to {rules.max_points} points",
        f"at least {rules.change_gap:g} px from any change",
        f"at least {rules.point_gap:g} px apart",
        f"| {rules.region.low:g} and {rules.region.high:g} |",
        f"± {rules.severity_margin:g}",
        f"{rules.ratio.low:g} and {rules.ratio.high:g}; {rules.presence.low:g} and {rules.presence.high:g}",
        f"grows or shrinks by {rules.stable:g} px",
    ):
        assert written in page, f"docs/explanation/percept.md does not say: {written}"


def test_every_lesion_is_listed_with_the_findings_that_exclude_it() -> None:
    text = hooks.lesions()
    assert "| `cardiomegaly` | cardiomegaly | none | none | thorax |" in text
    assert "| `effusion` | pleural effusion | none | none | lung fields |" in text
    assert (
        "| `pneumonia` | pneumonia | consolidation, lung opacity | atelectasis, edema, mass | lung fields |"
        in text
    )


def reasons() -> set[str]:
    """Every reason for which percept leaves a study out, from the code."""
    return {
        call.args[0].value
        for path in (ROOT / "src" / "carina" / "percept").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Ineligible"
    }


def test_every_reason_for_leaving_a_study_out_is_explained() -> None:
    page = (ROOT / "docs" / "how-to" / "percept.md").read_text(encoding="utf-8")
    studies, steps = (
        set(re.findall(r"^\| `([^`]+)` \|", page.partition(heading)[2].partition("\n## ")[0], re.MULTILINE))
        for heading in ("## What the reasons mean", "## Steps that are left out")
    )
    assert studies == reasons() - steps
    assert reasons() & steps


def test_pieces_are_put_in_their_place() -> None:
    page = hooks.on_page_markdown("before\n\n<!-- carina: severity -->\n\nafter")
    assert page.startswith("before\n\n<!-- carina: severity -->\n\n| finding | measure |")
    assert page.endswith("|\n\n<!-- end -->\n\nafter")
    assert hooks.fill_page(page) == page
    assert "| cardiomegaly | cardiothoracic ratio | 0.55 | 0.6 |" in page


@pytest.mark.parametrize(
    "page",
    [
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if "<!-- carina:" in path.read_text(encoding="utf-8")
    ],
    ids=lambda path: path.name,
)
def test_pages_hold_the_pieces_as_the_code_has_them(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == hooks.fill_page(text), f"{page.name} is out of date: run make reference"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_pages_have_no_placeholders(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"\{\{\s*[\w.-]+\s*\}\}|\{%|^::: ", text, re.MULTILINE)


def test_pages_ask_only_for_pieces_that_exist() -> None:
    asked = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"<!-- carina: (\S+) -->", page.read_text(encoding="utf-8"))
    }
    assert asked == set(hooks.PIECES)
