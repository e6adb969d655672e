"""Imports of DICOM objects with a key of their own."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from carina.sources import Imported, import_source
from carina.sources.dicom.attributes import DicomObject, parse_object


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret" / "dicom.key"
    path.parent.mkdir()
    path.write_text("5a" * 32 + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def import_objects(tmp_path: Path, key_file: Path) -> Callable[..., Imported]:
    """Imports encoded objects, named in their order."""

    def import_(
        contents: Iterable[bytes], *, workers: int = 1, out: str = "out", **options: object
    ) -> Imported:
        folder = tmp_path / f"{out}-in"
        folder.mkdir()
        for number, content in enumerate(contents, start=1):
            (folder / f"{number:04d}.dcm").write_bytes(content)
        given = {"key_file": key_file, **options}
        return import_source("dicom", folder, tmp_path / out, options=given, workers=workers)

    return import_


@pytest.fixture
def parse() -> Callable[[bytes], DicomObject]:
    return lambda content: parse_object(content, is_whole=True, with_pixels=True, max_bytes=1_000_000)
