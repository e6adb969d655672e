"""The data card: the content of a folder, its sources, intended use and limits.

Its head, in YAML, states the files of each split for `datasets`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from carina.cases import store
from carina.exports._folder import ExportManifest

SPLITS: Final = {"val": "validation"}
"""Splits by the names that `datasets` expects."""
_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LARGEST: Final = "1M<n<10M"
_PICTURES: Final = {
    "none": "No picture is in this folder. Images are named by key (`images[].key`): whoever has the image source "
    "under its own terms finds them there, and `carina` draws the views.",
    "copy": "Pictures are PNG files in `images/`. The column `pictures` holds their paths relative to this folder, one "
    "a view in the order of `views`.",
    "embed": "Pictures are in the column `pictures`, one a view in the order of `views`; `datasets` decodes them.",
}
_COLUMNS: Final = {
    "id, protocol, study, patient, source, split": "which case it is; linked studies in `reference_study` and "
    "`later_study`",
    "context": "what a reader is told of the patient",
    "images": "images by key, with role (current, reference), view and size; 0 x 0 is unknown",
    "views": "pictures as they are shown: image, crop, and what is drawn on it",
    "regions": "masks that views draw and keys name (COCO run lengths)",
    "steps": "questions in order: `question` as it is sent, `options`, `shows` (views that enter), `format`, `stage`, "
    "`task`, `depends_on`, `evidence`",
    "steps[].key": "what is right: `text` in words, and `options`, `label`, `boxes`, `regions` or `sections`",
    "facts, steps[].facts": "what keys rest on",
}


def make_card(name: str, manifest: ExportManifest, counts: store.Counts) -> str:
    """The text of `README.md`."""
    return f"---\n{_make_head(name, manifest)}---\n\n{_make_body(name, manifest, counts)}"


def _make_head(name: str, manifest: ExportManifest) -> str:
    described: dict[str, Any] = {
        "pretty_name": name,
        "license": "other",
        "license_name": "see-sources",
        "language": ["en"],
        "task_categories": ["visual-question-answering", "image-text-to-text"],
        "tags": ["chest-x-ray", "radiology", "medical", "carina", *sorted(_source_names(manifest))],
        "size_categories": [
            next((size for limit, size in _SIZES if manifest.counts.cases < limit), _LARGEST)
        ],
        "configs": [
            {
                "config_name": "default",
                "data_files": [
                    {"split": SPLITS.get(split, split), "path": f"data/{split}-*.parquet"}
                    for split in manifest.counts.splits
                ],
            }
        ],
    }
    text: str = yaml.safe_dump(described, sort_keys=False, allow_unicode=True, width=120)
    return text


def _source_names(manifest: ExportManifest) -> set[str]:
    return {source.name for source in manifest.sources}


def _make_body(name: str, manifest: ExportManifest, counts: store.Counts) -> str:
    written = manifest.counts
    first = SPLITS.get(next(iter(written.splits)), next(iter(written.splits)))
    answers = bool(manifest.options["answers"])
    answered = "with the right answer to each" if answers else "without their answers"
    columns = [(f"`{column}`", text) for column, text in _COLUMNS.items() if answers or "key" not in column]
    return f"""# {name}

{written.cases:,} cases with {written.questions:,} questions about chest X-rays, {answered}. A case is one study; its
questions are asked one after the other, and what was shown and answered before stays in view.

```python
from datasets import load_dataset

cases = load_dataset("path/to/this/folder")["{first}"]
for step in cases[0]["steps"]:
    print(step["question"]{', step["key"]["text"]' if answers else ""})
```

## Counts

{_format_table(("split", "cases"), written.splits)}

{_format_table(("protocol", "cases"), counts.protocols)}

{_format_table(("stage", "questions"), counts.stages)}

{_format_table(("task", "questions"), counts.tasks)}

{counts.patients:,} patients and {counts.images:,} images, as far as the cases tell. Splits are those of the benchmark:
they are not drawn anew, and a patient is in one of them alone where the benchmark keeps to that (`carina audit`).

## Columns

{_format_rows(("column", "holds"), columns)}

{_PICTURES[manifest.options["pictures"]]}

## Sources and terms

{_format_rows(("source", "terms", "address"), ((s.name, s.licence, s.url or "") for s in manifest.sources))}

Each source's terms hold for what comes from it: images, report text, and the questions and answers made from them.

## Intended use

To measure, step by step, whether a vision-language model sees what is in a chest X-ray, and to train on the split that
is meant for it.

## Limits

- For research. Not for diagnosis, treatment or triage, and no evidence that a model is fit for them.
- Answers are as right as the truth that they were made from: report text, annotations, or a simulation.
- Questions come from templates or from somebody's earlier work; a score on them is a score on their wording.
- Rates of findings are those of the benchmark, not those of a clinic.
- {"Who trains on the split test has no measure left." if answers else "Answers are kept apart, in the benchmark."}

## How it was made

```sh
{manifest.command}
```

Carina {manifest.carina}, seed {manifest.seed}, benchmark {manifest.benchmark[:16]}; `carina.json` has the checksum of
every file, and `croissant.json` describes them for machines.
"""


def _format_table(headings: tuple[str, str], values: Mapping[str, int]) -> str:
    return _format_rows(headings, ((f"{name}", f"{n:,}") for name, n in values.items()))


def _format_rows(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', ' ') for cell in line)} |" for line in lines)
