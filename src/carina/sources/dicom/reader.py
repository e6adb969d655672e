"""The reader of a hospital's own DICOM: chest radiographs and their segmentations into studies.

Two passes: the first reads the attributes of every object and puts images, studies and patients together; the second
decodes the pixels, study by study, in the workers of the import.
"""

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from carina.sources._record import SourceError
from carina.sources._source import Plan, Stream, source
from carina.sources.dicom import greyscale, header, segmentation, structured_report, study_content
from carina.sources.dicom.attributes import check_extra
from carina.sources.dicom.burned_in import (
    choose_looking,
    describe_decision,
    has_text_detector,
    name_text_detector,
    require_text_detector,
)
from carina.sources.dicom.files import list_files
from carina.sources.dicom.header import Rules
from carina.sources.dicom.privacy import (
    METHOD_OF_CLEAN_PIXELS,
    METHODS,
    METHODS_WITH_IDENTIFIERS,
    NOT_WITH_REPORT_TEXT,
    Pseudonyms,
    default_key_file,
    load_key,
    replace_private,
)
from carina.sources.dicom.survey import ORDER_UNKNOWN, Survey, survey
from carina.store.errors import install

_FORMAT: Final = "4"
"""Version of what is decided here; a change makes an interrupted import start again."""

_FILE_COLUMNS: Final = ("object", "file", "study", "reason")
"""Of the table of files, which is known by them."""
_KEPT: Final = "Ids and dates are kept (--keep-identifiers): the study set names patients; do not share it."

DEFECTS: Final = {
    study_content.NOT_LOOKED_FOR: "the header does not say whether text is burned into the image, and nothing has "
    "looked for it: used; look at the images",
    study_content.BY_HEADER_ALONE: "the header says that no text is burned into the image, and nothing has looked for "
    "it: used; look at the images",
    header.BURNED_IN: "text is burned into the image: used, as asked for",
    study_content.MASKED_TEXT: "text in the image was covered",
    header.OLD_AGE: "the patient is 90 or over in a study: no study of the patient has an exact age, but 90, or none "
    "where not all known ages are of that class",
    header.NO_PATIENT: "the study counts as one patient of its own",
    header.SEVERAL_ISSUERS: "the issuer tells the patients apart, unless --use-issuer never; a study without it is of "
    "another patient",
    header.ISSUER_ASSUMED: "the study does not state the issuer of the patient id; the only one that is stated for the "
    "same id was taken",
    header.NO_DATE: "the study has no place among those of the patient",
    header.UNKNOWN_VIEW: "the view is recorded as unknown",
    header.UNKNOWN_BODY_PART: "used as an image of the chest, as asked for",
    header.MIRRORED: "image and masks were turned to the usual display",
    greyscale.NO_WINDOW: "the range of the values that occur is displayed",
    greyscale.BAD_WINDOW: "the window was ignored, and the range of the values that occur is displayed",
    greyscale.CONTRADICTION: "the presentation LUT shape decided, not the photometric interpretation",
    ORDER_UNKNOWN: "studies of the patient have the same date and time: none of them has a prior or follow-up study",
    segmentation.UNKNOWN_SEGMENT: "the segment has no name that Carina knows: left out",
    study_content.MASK_SIZE: "the mask was left out",
    study_content.LOST_IMAGE: "the mask was left out",
    structured_report.UNKNOWN_FINDING: "a structured report has a finding that Carina does not know: left out",
    structured_report.UNKNOWN_OUTLINE: "a structured report has an outline that is not a closed line: left out",
    structured_report.UNKNOWN_PRESENCE: "a structured report says by a code that Carina does not know, or by two that "
    "differ, whether a finding is present: nothing is concluded about it",
    structured_report.UNKNOWN_SITE: "a structured report says by a code that Carina does not know, or by two that "
    "contradict each other, where a finding lies: that is left out; where the finding is absent there, nothing is "
    "concluded about it",
    structured_report.DENIED_IN_PART: "a structured report denies a finding in a degree or a form, such as its "
    "severity: another one may be there, so that nothing is concluded about it",
    structured_report.NOT_PRESENTED: "a mark that a program made and does not want to be presented: left out",
    study_content.UNKNOWN_ALGORITHM: "the segmentation does not say whether a person or a program drew the segment: "
    "used as drawn by a program",
    study_content.CONFLICT: "a structured report contradicts a mask or another statement: the finding is disputed, so "
    "that builds do not ask about it",
    study_content.NO_REPORTS: "--report-text: the input holds no structured report, so that no study has text",
    structured_report.DROPPED_TEXT: "the text of a structured report was left out; --report-text keeps it",
    study_content.IDENTIFYING_TEXT: "the text of a structured report holds a name, a number, a date or an age of 90 "
    "or over: left out",
}


def _record_options(path: Path, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the manifest says: no path, no name, and the codes of PS3.15 for what was done."""
    names = _load_names(options["key_file"], out=None, keep_identifiers=options["keep_identifiers"])
    files = "\n".join(f"{file.size} {file.name}" for file in list_files(path))
    methods = dict(METHODS)
    if options["keep_identifiers"]:
        methods = {code: METHODS[code] for code in ("113103", "113104", "113105", "113108")}
        methods = {**methods, **METHODS_WITH_IDENTIFIERS}
    looking = choose_looking(options["burned_in"], options["look_for_text"])
    if looking == "always":
        methods |= METHOD_OF_CLEAN_PIXELS
    if options["report_text"]:
        methods = {code: meaning for code, meaning in methods.items() if code not in NOT_WITH_REPORT_TEXT}
    return {
        "key": names.key_id if names.key else "none",
        "objects": names.digest("objects", f"{_FORMAT}\n{files}".encode("utf-8", "surrogatepass")),
        "burned_in": options["burned_in"],
        "look_for_text": looking,
        "text_detector": "none" if looking == "never" else name_text_detector(),
        "burned_in_decision": describe_decision(options["burned_in"], looking),
        "report_text": options["report_text"],
        "unknown_body_part": options["unknown_body_part"],
        "use_issuer": options["use_issuer"],
        **({} if options["looked_for"] == "unknown" else {"looked_for": options["looked_for"]}),
        "identifiers": "kept" if options["keep_identifiers"] else "keyed hashes",
        "patient_identity_removed": _say_what_is_removed(options, looks_at_all=looking == "always"),
        "deidentification_methods": [f"{code} {meaning}" for code, meaning in sorted(methods.items())],
    }


def _say_what_is_removed(options: Mapping[str, Any], *, looks_at_all: bool) -> str:
    """YES where headers and the pixels of every image were dealt with and no text is kept; otherwise what is not."""
    if options["keep_identifiers"] or options["burned_in"] == "keep":
        return "NO"
    if not looks_at_all:
        return "FROM HEADERS ONLY"
    return "NOT VERIFIED IN REPORT TEXT" if options["report_text"] else "YES"


def _plan_import(_path: Path, options: Mapping[str, Any]) -> Plan:
    """The sentences that the import prints about text in images, and about identifiers that are kept."""
    burned_in, look_for_text = options["burned_in"], options["look_for_text"]
    sentence = describe_decision(burned_in, choose_looking(burned_in, look_for_text))
    hint = f" To look for it: {install('ocr')}." if not has_text_detector() else ""
    kept = (_KEPT,) if options["keep_identifiers"] else ()
    return Plan(lines=(sentence + hint, *kept))


@source(
    name=study_content.NAME,
    title="Chest radiographs of a hospital, as DICOM files",
    needs="a folder, a DICOMDIR or a zip archive of DICOM files; the extra dicom, and ocr to look for text in images.",
    tree="""
    ARCHIVE/                 any names, any depth; or one DICOMDIR, or one zip archive
      PATIENT/STUDY/IM1.dcm  DX or CR for presentation, of the chest: an image
      PATIENT/STUDY/SEG.dcm  segmentation that refers to the image: masks
      PATIENT/STUDY/SR.dcm   structured report of the study: coded findings
    """,
    licence="That of your hospital: Carina brings no data.",
    truth=("masks", "labels", "report", "priors"),
    image_root="out",
    inputs=lambda _path: {},
    record_options=_record_options,
    plan=_plan_import,
    defects=DEFECTS,
)
def read_dicom(
    path: Path,
    *,
    out: Path,
    key_file: Annotated[
        Path | None,
        Meta(
            description="File of the key for pseudonyms and date shifts; created where it is missing, refused within "
            "the output. By default dicom.key in your folder of settings for carina."
        ),
    ] = None,
    burned_in: Annotated[
        Literal["skip", "mask", "keep"],
        Meta(
            description="What to do with images that hold text, by their header or by what is found in the pixels. "
            "skip: leave them out. mask: cover the text with black. keep: use them as they are, and look for nothing. "
            "Markers such as L, R or PORTABLE are no text."
        ),
    ] = "skip",
    look_for_text: Annotated[
        Literal["always", "unknown", "never"] | None,
        Meta(
            description="Which images to look at for text, with the extra ocr, which takes 0.3 to 3 seconds "
            "an image. always: all. unknown: those whose header does not say that there is none. never: no image. "
            "By default always where the extra is installed, and never where it is not. Images that nothing has "
            "looked at are counted."
        ),
    ] = None,
    unknown_body_part: Annotated[
        Literal["skip", "keep"],
        Meta(
            description="What to do with images whose header does not say which part of the body they show."
        ),
    ] = "skip",
    use_issuer: Annotated[
        header.UseIssuer,
        Meta(
            description="Whether Issuer of Patient ID belongs to the id of a patient. stated: where it is stated; an "
            "id without issuer is of the only issuer that this import has for the same id, which is counted. always: "
            "for archives of several hospitals; an id with and without issuer is of two patients. never: the same id "
            "is the same patient."
        ),
    ] = "stated",
    report_text: Annotated[
        bool,
        Meta(
            description="Keep the text of structured reports in which no name, number, date or age of 90 or over is "
            "found. The check cannot find a name that is in no header, so the manifest does not say that the identity "
            "of patients was removed: read the texts before you share them."
        ),
    ] = False,
    keep_identifiers: Annotated[
        bool,
        Meta(
            description="Keep ids and dates as they are. The study set then names patients: do not share it."
        ),
    ] = False,
    looked_for: Annotated[
        Literal["every", "unknown"],
        Meta(
            description="What was looked for when masks and structured reports were made: every finding, or unknown. "
            "What was looked for and is not recorded counts as absent. Nothing is concluded about devices."
        ),
    ] = "unknown",
    file_table: Annotated[
        Path | None,
        Meta(
            description="CSV file to write that tells which file each object number and study stands for. It "
            "identifies patients, and is refused within the output. Only the table of an earlier import is replaced."
        ),
    ] = None,
) -> Stream:
    """Studies in the order of their patients' names, then the objects that are skipped."""
    check_extra()
    names = _load_names(key_file, out, keep_identifiers=keep_identifiers)
    if burned_in == "mask" and look_for_text == "never":
        raise SourceError("--burned-in mask: text must be looked for: leave out --look-for-text never")
    if burned_in == "mask":
        require_text_detector("--burned-in mask")
    looking = choose_looking(burned_in, look_for_text)
    if looking != "never":
        require_text_detector(f"--look-for-text {looking}")
    rules = Rules(
        names=names,
        burned_in=burned_in,
        look_for_text=looking,
        unknown_body_part=unknown_body_part,
        use_issuer=use_issuer,
        keep_identifiers=keep_identifiers,
        report_text=report_text,
        looked_for=looked_for,
    )
    if file_table is not None:
        _check_file_table(file_table, out)
    found = survey(list_files(path), rules)
    if file_table is not None:
        _write_file_table(file_table, found)
    lacks_reports = report_text and not found.reports
    for number, plan in enumerate(found.plans(), start=1):
        noted = replace(plan, defects=(*plan.defects, study_content.NO_REPORTS)) if lacks_reports else plan
        yield partial(study_content.read_study, noted, number)
    yield from found.skipped


def _load_names(key_file: Path | None, out: Path | None, *, keep_identifiers: bool) -> Pseudonyms:
    """The key of the names; an empty one where identifiers are kept and no key file is named."""
    if keep_identifiers and key_file is None:
        return Pseudonyms(b"")
    return load_key(key_file or default_key_file(), out)


def _check_file_table(path: Path, out: Path) -> None:
    """Refuse a path within the output, and one of a file that is no such table: it would be lost.

    Raises:
        SourceError: The table must not be written there.
    """
    if path.resolve().is_relative_to(out.resolve()):
        raise SourceError(
            f"{path}: the table of files names patients and lies in {out}, which may be shared: keep it elsewhere "
            "(--file-table)"
        )
    if not os.path.lexists(path):
        return
    try:
        is_table = (
            path.is_file() and not path.is_symlink() and _starts_with(path, f"{','.join(_FILE_COLUMNS)}\n")
        )
    except OSError as error:
        raise SourceError(f"{path}: the file cannot be read: {error.strerror} (--file-table)") from error
    if not is_table:
        raise SourceError(
            f"{path}: there is something else than a table of files, which would be lost: name a file that does not "
            "exist, or the table of an earlier import (--file-table)"
        )


def _starts_with(path: Path, line: str) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(line)) == line


def _write_file_table(path: Path, found: Survey) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_FILE_COLUMNS)
    table.writerows(found.rows)
    try:
        replace_private(path, text.getvalue())
    except OSError as error:
        raise SourceError(f"{path}: the table of files cannot be written: {error.strerror}") from error
