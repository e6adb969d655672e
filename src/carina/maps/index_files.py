"""The index of a directory of maps or masks: `index.csv`, for images and findings that cannot be names of files."""

from pathlib import Path
from typing import Final, Literal

from carina.store.documents import read_csv
from carina.store.errors import CarinaError

INDEX: Final = "index.csv"


def read_index(directory: Path, column: Literal["map", "mask"]) -> dict[tuple[str, str], Path]:
    """Files by image and finding, from the columns `image`, `finding` and `map` or `mask` of the index.

    Raises:
        CarinaError: A column is missing, a file is not in the directory, or an image and finding have two.
    """
    index = directory / INDEX
    rows = read_csv(index)
    columns = ("image", "finding", column)
    if not rows or not set(columns) <= set(rows[0]):
        raise CarinaError(f"{index}: expected the columns {', '.join(columns)}")
    files: dict[tuple[str, str], Path] = {}
    for number, row in enumerate(rows, start=2):
        key = row["image"], row["finding"]
        if key in files:
            raise CarinaError(
                f"{index}, line {number}: image {key[0]!r} and finding {key[1]!r} have two {column}s"
            )
        path = directory / row[column]
        if not path.is_file() or not path.resolve().is_relative_to(directory.resolve()):
            raise CarinaError(f"{index}, line {number}: {row[column]!r} is not in {directory}")
        files[key] = path
    return files
