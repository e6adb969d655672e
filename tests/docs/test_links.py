"""Links lead somewhere, pictures are small, and nothing in the repository points to one person's machine."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MACHINE = re.compile(r"(?<![\w./~-])/(home|Users|root|work|mnt|opt)/[\w.-]+")
MAKING = re.compile(r"co-authored-by|generated with|ai-generated", re.IGNORECASE)


def links(page: Path) -> list[str]:
    """Targets within the repository, without those in code."""
    found = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in found if not re.match(r"https?:|mailto:", target)]


def headings(page: Path) -> set[str]:
    """Anchors of a page, as the site and code hosts make them of plain headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target} does not exist"
        assert there.is_relative_to(ROOT), f"{page.name}: {target} leads out of the repository"
        if anchor and there.suffix == ".md":
            assert anchor in headings(there), f"{page.name}: {target} has no such heading"


def test_every_picture_is_used_and_small() -> None:
    used = {(page.parent / target).resolve() for page in PAGES for target in links(page)}
    pictures = sorted((ROOT / "docs" / "assets").glob("*"))
    assert pictures
    assert [picture.name for picture in pictures if picture not in used] == []
    assert all(picture.stat().st_size < 300_000 for picture in pictures)
    assert sum(picture.stat().st_size for picture in pictures) < 2_500_000


def texts() -> dict[str, str]:
    """Every text file under version control but this one, by name."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() and path != Path(__file__) else b"\0"
        if b"\0" not in content:
            found[name] = content.decode()
    return found


def test_no_page_contains_a_path_of_one_machine_or_how_it_was_made() -> None:
    for name, text in texts().items():
        for pattern in (MACHINE, MAKING):
            match = pattern.search(text)
            assert match is None, f"{name}: {match.group()}"
