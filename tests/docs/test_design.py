"""docs/explanation/design.md shows the packages as they are."""

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
    diagram = PAGE.split("## Packages")[1].split("```text")[1].split("```")[0]
    packages = {path.name for path in (ROOT / "src" / "carina").iterdir() if (path / "__init__.py").exists()}
    rows = []
    for line in diagram.splitlines():
        names = re.split(r"\s{4,}", line.strip())[0] if "│" not in line else ""
        found = {word for word in re.findall(r"[a-z]+", names) if word in packages}
        if found:
            rows.append(found)
    assert rows == [layer for layer in LAYERS if layer not in ({"program"}, {"tour"}, {"version"})]


def test_every_package_is_described_and_linted():
    packages = {path.name for path in (ROOT / "src" / "carina").iterdir() if (path / "__init__.py").exists()}
    table = PAGE.split("```")[4].split("## ")[0]
    named = [line.split(" | ")[0] for line in table.splitlines()]
    described = set(re.findall(r"`carina\.([a-z]+)`", " ".join(named)))
    assert described == packages
    assert set.union(*LAYERS) - {"program", "tour", "version"} == packages
