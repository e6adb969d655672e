"""docs/explanation/design.md shows the rooms as they are."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
LAYERS = [
    {name.strip().removeprefix("carina.") for name in layer.split("|")}
    for layer in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
]


def test_the_diagram_has_the_layers_that_the_linter_holds():
    diagram = PAGE.split("## Rooms")[1].split("```text")[1].split("```")[0]
    rooms = {path.name for path in (ROOT / "src" / "carina").iterdir() if (path / "__init__.py").exists()}
    rows = []
    for line in diagram.splitlines():
        names = re.split(r"\s{4,}", line.strip())[0] if "│" not in line else ""
        found = {word for word in re.findall(r"[a-z]+", names) if word in rooms}
        if found:
            rows.append(found)
    assert rows == [layer for layer in LAYERS if layer not in ({"tour"}, {"version"})]


def test_every_room_is_described_and_linted():
    rooms = {path.name for path in (ROOT / "src" / "carina").iterdir() if (path / "__init__.py").exists()}
    table = PAGE.split("```")[4].split("## ")[0]
    described = set(re.findall(r"`carina\.([a-z]+)`", table))
    assert described == rooms
    assert set.union(*LAYERS) - {"tour", "version"} == rooms
