"""Machine-readable metadata of a folder: MLCommons Croissant 1.0, for `mlcroissant` and data set searches."""

from typing import Any, Final

from carina.exports._folder import ExportManifest

FILES: Final = "parquet-files"
_CONFORMS: Final = "http://mlcommons.org/croissant/1.0"
_TEXT: Final = "sc:Text"
_INTEGER: Final = "sc:Integer"
_CASE: Final = {
    "id": "Name of the case; unique",
    "protocol": "Which examination it is",
    "study": "Study that it asks about",
    "patient": "Patient, where the source tells",
    "source": "Where the study comes from",
    "split": "train, val or test, where there is one; patients are in one split alone",
    "order": "Whether stages come in order",
}
"""Columns of plain text, and what they say."""
_STEP: Final = {
    "id": (_TEXT, "id", "Name of the question in its case"),
    "stage": (_INTEGER, "stage", "Stage of the examination"),
    "task": (_TEXT, "task", "Kind of question"),
    "format": (_TEXT, "format", "How it is answered"),
    "question": (_TEXT, "question", "As it is sent"),
    "answer": (_TEXT, "key.text", "The right answer in words"),
}
"""Name, type, path within a step, meaning."""


def make_croissant(name: str, manifest: ExportManifest) -> dict[str, Any]:
    """The description of the folder as a JSON-LD document."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": name,
        "description": f"{manifest.counts.cases} cases with {manifest.counts.questions} questions about chest X-rays, "
        "in order, with what is right and why. See README.md.",
        "conformsTo": _CONFORMS,
        "version": manifest.carina,
        "license": sorted({source.licence for source in manifest.sources}) or ["unknown"],
        **_source_addresses(manifest),
        "distribution": [
            {
                "@type": "cr:FileSet",
                "@id": FILES,
                "name": FILES,
                "description": "Cases, one a row; the name of a file begins with its split.",
                "encodingFormat": "application/x-parquet",
                "includes": "data/*.parquet",
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "cases",
                "name": "cases",
                "description": "One record a case; its questions are in steps.",
                "key": {"@id": "cases/id"},
                "field": [
                    *(
                        _make_field(f"cases/{column}", _TEXT, meaning, column)
                        for column, meaning in _CASE.items()
                    ),
                    _make_step_fields(answers=bool(manifest.options["answers"])),
                ],
            }
        ],
    }


def _source_addresses(manifest: ExportManifest) -> dict[str, Any]:
    """Addresses of the sources, where they have some."""
    addresses = sorted({source.url for source in manifest.sources if source.url})
    return {"url": addresses[0], "sameAs": addresses} if addresses else {}


def _make_field(name: str, kind: str, meaning: str, column: str, path: str | None = None) -> dict[str, Any]:
    source: dict[str, Any] = {"fileSet": {"@id": FILES}, "extract": {"column": column}}
    if path is not None:
        source["transform"] = {"jsonPath": f"[*].{path}"}
    return {
        "@type": "cr:Field",
        "@id": name,
        "name": name.rpartition("/")[2],
        "description": meaning,
        "dataType": kind,
        "source": source,
    }


def _make_step_fields(*, answers: bool) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": "cases/steps",
        "name": "steps",
        "description": "Questions in the order in which they are asked.",
        "repeated": True,
        "subField": [
            _make_field(f"cases/steps/{name}", kind, meaning, "steps", path)
            for name, (kind, path, meaning) in _STEP.items()
            if answers or name != "answer"
        ],
    }


_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The names of the standard, which its parsers expect in full."""
