"""Tiny files of published questions: images, imports, and a run through the command line."""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from carina.cli import app
from carina.sources import import_source

PATIENT, STUDY, OTHER = "10000001", "50000001", "50000002"


def write_image(path: Path, width: int = 12, height: int = 8, *, mode: str = "L") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (height, width) if mode == "L" else (height, width, 3)
    Image.fromarray(np.arange(np.prod(shape), dtype=np.uint8).reshape(shape), mode).save(path)
    return path


def write_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_mimic_image(root: Path, study: str, image: str, *, patient: str = PATIENT) -> str:
    """The key of an image in the layout of MIMIC-CXR-JPG."""
    key = f"files/p{patient[:2]}/p{patient}/s{study}/{image}.jpg"
    write_image(root / key)
    return key


def read_cases(source: str, path: Path, out: Path, **settings: object):
    """The cases by id, and the import."""
    imported = import_source(source, path, out, workers=1, **settings)
    return {case.id: case for case in imported.opened()}, imported


def carina(*arguments: object):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result


def run_through(source: str, path: Path, out: Path, *options: object) -> dict[str, object]:
    """Import, check and evaluate through the command line; step rows of the oracle and of random answers."""
    carina("import", source, path, "-o", out / "bench", "--workers", "1", *options)
    carina("check", out / "bench")
    from carina import open_run

    rows = {}
    for model in ("oracle", "random", "majority"):
        carina("run", out / "bench", "--model", f"builtin/{model}", "-o", out / model)
        rows[model] = open_run(out / model).to_frame()
    carina("report", out / "oracle", out / "random", "-o", out / "report")
    return rows
