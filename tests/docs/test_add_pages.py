"""The examples of "Add a source" and "Add an export" as installed packages, found by the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.exports.chat import conversation

from carina.studies import write_png

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [body for kind, body in BLOCK.findall((HOW_TO / page).read_text()) if kind == language]


def install(folder, page):
    """Lay the first Python block of a page down as its entry point names it, as an installation would."""
    (announced,) = blocks(page, "toml")
    group, name, module = re.search(r'entry-points\."(.*?)"\]\n([\w-]+) = "(.*?)"', announced).groups()
    (folder / f"{module}.py").write_text(blocks(page, "python")[0])
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")


def run(folder, command):
    """What a command prints on both channels, errors first."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, "-c", "from carina.program import main; main()", *command.split()[1:]]
    done = subprocess.run(
        program,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def transcript(page):
    """Commands and what they print, from the last block of a page that shows some."""
    shown = next(body for body in reversed(blocks(page, "text")) if body.startswith("$ "))
    return [part.split("\n", 1) for part in shown.removeprefix("$ ").split("\n$ ")]


def matches(expected, printed):
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL)


def sorted_lines(text):
    return "\n".join(sorted(text.strip().splitlines()))


@pytest.mark.parametrize("page", ["add-a-source.md", "add-an-export.md"])
def test_the_command_line_finds_what_the_page_adds(tmp_path, page):
    install(tmp_path, page)
    if page == "add-a-source.md":
        for name in ("a", "b", "c"):
            write_png(tmp_path / "scans" / f"{name}.png", np.zeros((64, 64), np.uint8))
        rows = re.search(r'"(id,patient.*?)"', blocks(page, "python")[1])[1]
        (tmp_path / "scans" / "scans.csv").write_text(rows.replace("\\n", "\n"))
    else:
        conversation.write(tmp_path / "bench", [conversation.case(n) for n in range(1, 7)])
    for command, expected in transcript(page):
        printed = run(tmp_path, command)
        assert matches(sorted_lines(expected), sorted_lines(printed)), printed


def test_a_source_takes_no_more_than_forty_lines():
    parser = blocks("add-a-source.md", "python")[0]
    assert len([line for line in parser.splitlines() if line.strip()]) == 36  # as the page says


def test_help_lists_what_the_pages_add(tmp_path):
    for page in ("add-a-source.md", "add-an-export.md"):
        install(tmp_path, page)
    assert "my-scans" in run(tmp_path, "carina import --help")
    assert "--uncertain keep|skip" in run(tmp_path, "carina import my-scans --help")
    assert "a table of questions" in run(tmp_path, "carina export --help")
    assert "--separator tab|comma" in run(tmp_path, "carina export --to questions --help")
