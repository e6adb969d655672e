"""How well does `carina.reports` read? Precision, recall and F1 per field, and reports per second.

    python benchmarks/report_extraction.py [--data ../shared/data] [--studies 400]

**Phantom reports** carry the exact facts of every sentence. The reader gets the sections as bare text and is scored on
what the report states, not on what is true of the study. The wording set `build` was open to the authors of the
lexicon; `held-out` was not: no sentence of it was looked at, only the figures below. Findings are those of the shared
vocabulary; what is compared is a set per report:

| field | an element |
|---|---|
| presence | a finding that is stated as there, plainly or in doubt |
| certainty | a finding with present, uncertain or absent |
| side, zone, severity, trend | a finding with each value stated of it (trend includes resolved) |
| device | a device with its certainty |
| relation | two names and how they relate; what accompanies has no direction |
| recommendation | an action with each finding or device it is about |
| comparison | a sentence that speaks of an earlier study |
| sentence | the span of a sentence |

**Open-i reports** are real, and carry MeSH codes that human coders gave after reading the report (`major`; the
`automatic` ones are another program's and are not used). A code is a heading with places and qualifiers; the table
`CODES` maps headings to our names. Rules of the comparison, decided on the development half (report ids with an even
first byte of their SHA-256); of the test half only figures are looked at,
except for denials of fractures and for recommendations, whose sentences were looked at in all reports:

- An element is a report and a finding that is there. Coders code only what is there, so that what is absent, and
  reports coded `normal`, count by what the reader must not find.
- Coders code most findings that a report hedges, and leave some out. A hedged finding counts as found like any other:
  it is right where it is coded and wrong where it is not. The second figure, `plain`, counts what is stated plainly
  alone.
- Shadows in the lung are one class here ("airspace": opacity, consolidation, infiltrate, pneumonia and density of
  the lung), because the coders write Opacity, Airspace Disease, Infiltrate and Consolidation for the same words from
  one report to the next. Findings that are parts of one another for the coders are joined in the same way (see
  `JOINED`).
- Sternotomy is not compared: the word for its wires was taken out of the reports with the names of persons, and coders
  rarely code it.
- Reports coded `No Indexing` were not coded and are left out. Codes without a counterpart are counted and not scored.
"""

import argparse
import gc
import hashlib
import sys
import tarfile
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from carina.phantom import PhantomOptions, make_studies
from carina.phantom.reports import write_report
from carina.reports import ReportFacts, read_report
from carina.reports.observations import parse_sentence
from carina.store.seeding import rng
from carina.studies import Study
from carina.studies.model import Report, ReportSection
from carina.studies.vocabulary import DEVICES, FINDINGS

SIZE = 64
"""Pixels: the words follow from geometry, which needs few."""
SEED = 20
PHANTOM_TARGET, OPENI_TARGET = 0.95, 0.85


class Score(NamedTuple):
    right: int = 0
    found: int = 0
    wanted: int = 0

    def plus(self, found: Iterable[Hashable], wanted: Iterable[Hashable]) -> "Score":
        found, wanted = set(found), set(wanted)
        return Score(self.right + len(found & wanted), self.found + len(found), self.wanted + len(wanted))

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.found + self.wanted) if self.found + self.wanted else 0.0

    def row(self, name: str) -> str:
        return f"{name:<28}{self.precision:>7.3f}{self.recall:>8.3f}{self.f1:>7.3f}{self.wanted:>9}"


HEAD = f"{'':<28}{'prec.':>7}{'recall':>8}{'F1':>7}{'support':>9}"


# --- phantom -----------------------------------------------------------------------------------------------


def phantom_studies(count: int, seed: int = SEED) -> list[Study]:
    return [study for study, _ in make_studies(count, seed, PhantomOptions(size=SIZE))]


def reworded(studies: list[Study], wording: str, seed: int = SEED) -> Iterator[Study]:
    """The studies with reports in another wording."""
    by_id = {study.id: study for study in studies}
    for study in studies:
        prior = by_id.get(study.prior) if study.prior else None
        bare = msgspec.structs.replace(study, report=None, recommendations=())
        yield write_report(bare, prior=prior, rng=rng(seed, study.id, "report"), wording=wording)


Fields = dict[str, set[Hashable]]


def stated(study: Study) -> Fields:
    """What the report of a phantom study states, from its linked statements."""
    fields: Fields = defaultdict(set)
    names = {each.id: each.name for each in (*study.findings, *study.devices)}
    for sentence in study.report.sentences:
        fields["sentence"].add((sentence.section, sentence.start, sentence.end))
        for state in sentence.states:
            if state.kind == "comparison":
                fields["comparison"].add((sentence.section, sentence.start))
            elif state.kind == "finding":
                _add_finding(fields, names[state.about], state)
            elif state.kind == "device" and state.certainty:
                fields["device"].add((names[state.about], state.certainty))
            elif state.kind == "relation":
                relation = next(each for each in study.relations if each.id == state.about)
                fields["relation"].add(_pair(names, relation))
    for each in study.recommendations:
        fields["recommendation"] |= {(each.action, names[about]) for about in each.about}
    return fields


def said(reading: ReportFacts) -> Fields:
    """The same of a reading."""
    fields: Fields = defaultdict(set)
    names = {each.id: each.name for each in (*reading.findings, *reading.devices)}
    known = {*FINDINGS, *DEVICES}
    for sentence in reading.report.sentences:
        fields["sentence"].add((sentence.section, sentence.start, sentence.end))
        for state in sentence.states:
            if state.kind == "comparison":
                fields["comparison"].add((sentence.section, sentence.start))
            elif state.kind == "finding" and names[state.about] in known:
                _add_finding(fields, names[state.about], state)
    for each in reading.devices:
        if each.name in known:
            fields["device"].add((each.name, each.certainty))
    for each in reading.relations:
        if names[each.subject] in known and names[each.object] in known:
            fields["relation"].add(_pair(names, each))
    for each in reading.recommendations:
        fields["recommendation"] |= {(each.action, names[about]) for about in each.about}
    return fields


def _add_finding(fields: Fields, name: str, state) -> None:
    if state.certainty:
        fields["certainty"].add((name, state.certainty))
        if state.certainty != "absent":
            fields["presence"].add(name)
    if state.side and state.certainty != "absent":
        fields["side"].add((name, state.side))
    fields["zone"] |= {(name, zone) for zone in state.zones}
    if state.severity:
        fields["severity"].add((name, state.severity))
    if state.trend:
        fields["trend"].add((name, state.trend))


def _pair(names: dict[str, str], relation) -> tuple[str, ...]:
    ends = names[relation.subject], names[relation.object]
    return (relation.kind, *(sorted(ends) if relation.kind == "accompanies" else ends))


def bare(report: Report) -> Report:
    """The sections alone, as a data set would carry them."""
    return Report(sections=report.sections)


def timed(reports: list[Report]) -> tuple[list[ReportFacts], float]:
    """Readings, and the CPU seconds they took: the best of three passes, each with no sentence remembered."""
    gc.collect()
    gc.freeze()  # The phantom's masks are not the reader's to sweep.
    seconds = []
    for _ in range(3):
        parse_sentence.cache_clear()
        start = time.process_time()
        readings = [read_report(report) for report in reports]
        seconds.append(time.process_time() - start)
    return readings, min(seconds)


FIELDS = (
    "presence", "certainty", "side", "zone", "severity", "trend", "device", "relation", "recommendation",
    "comparison", "sentence",
)  # fmt: skip


def score_phantom(studies: Iterable[Study]) -> tuple[dict[str, Score], float]:
    """A score per field, and reports per second."""
    pairs = [(study, bare(study.report)) for study in studies]
    readings, seconds = timed([report for _, report in pairs])
    scores = dict.fromkeys(FIELDS, Score())
    for (study, _), reading in zip(pairs, readings, strict=True):
        wanted, found = stated(study), said(reading)
        for field in FIELDS:
            scores[field] = scores[field].plus(found[field], wanted[field])
    return scores, len(pairs) / seconds


# --- Open-i ------------------------------------------------------------------------------------------------

CODES: dict[str, str] = {
    "opacity": "airspace",
    "airspace disease": "airspace",
    "infiltrate": "airspace",
    "consolidation": "airspace",
    "pneumonia": "airspace",
    "density": "airspace",
    "pulmonary atelectasis": "atelectasis",
    "volume loss": "atelectasis",
    "cardiomegaly": "cardiomegaly",
    "cardiac shadow": "cardiomegaly",
    "pulmonary congestion": "edema",
    "pulmonary edema": "edema",
    "heart failure": "edema",
    "fractures, bone": "fracture",
    "mass": "mass",
    "nodule": "nodule",
    "pleural effusion": "pleural effusion",
    "pneumothorax": "pneumothorax",
    "hydropneumothorax": "pneumothorax",
    "calcified granuloma": "granuloma",
    "granuloma": "granuloma",
    "granulomatous disease": "granuloma",
    "emphysema": "emphysema",
    "pulmonary emphysema": "emphysema",
    "bullous emphysema": "emphysema",
    "pulmonary disease, chronic obstructive": "emphysema",
    "cicatrix": "scarring",
    "fibrosis": "fibrosis",
    "pulmonary fibrosis": "fibrosis",
    "scoliosis": "scoliosis",
    "kyphosis": "kyphosis",
    "spondylosis": "degenerative change",
    "osteophyte": "degenerative change",
    "arthritis": "degenerative change",
    "hyperostosis, diffuse idiopathic skeletal": "degenerative change",
    "hernia, hiatal": "hernia",
    "diaphragmatic eventration": "elevated hemidiaphragm",
    "atherosclerosis": "aortic calcification",
    "bone diseases, metabolic": "osteopenia",
    "aortic aneurysm": "aortic aneurysm",
    "pericardial effusion": "pericardial effusion",
    "bronchiectasis": "bronchiectasis",
    "lung diseases, interstitial": "interstitial markings",
    "implanted medical device": "implant",
    "medical device": "implant",
    "catheters, indwelling": "catheter",
    "tube, inserted": "tube",
    "surgical instruments": "surgical material",
    "stents": "stent",
}
"""MeSH heading, in lower case, to the class that is compared."""

QUALIFIED: dict[str, dict[str, str]] = {
    "lung": {
        "hyperdistention": "hyperinflation",
        "hypoinflation": "low lung volumes",
        "interstitial": "interstitial markings",
    },
    "lung, hyperlucent": {"": "hyperinflation"},
    "aorta": {"tortuous": "aortic tortuosity", "ectatic": "aortic tortuosity"},
    "aorta, thoracic": {"tortuous": "aortic tortuosity", "ectatic": "aortic tortuosity"},
    "spine": {"degenerative": "degenerative change"},
    "thoracic vertebrae": {"degenerative": "degenerative change"},
    "lumbar vertebrae": {"degenerative": "degenerative change"},
    "shoulder": {"degenerative": "degenerative change"},
    "costophrenic angle": {"blunted": "blunted costophrenic angle"},
    "diaphragm": {"elevated": "elevated hemidiaphragm", "flattened": "hyperinflation"},
    "thickening": {"pleura": "pleural thickening"},
    "mediastinum": {"prominent": "mediastinal widening", "enlarged": "mediastinal widening"},
    "markings": {"bronchovascular": "bronchovascular crowding", "": "interstitial markings"},
    "calcinosis": {
        "aorta": "aortic calcification",
        "aorta, thoracic": "aortic calcification",
        "blood vessels": "aortic calcification",
        "lymph nodes": "calcified lymph node",
        "mediastinum": "calcified lymph node",
        "hilum": "calcified lymph node",
        "lung": "granuloma",
    },
}
"""Headings that mean something only with one of their qualifiers: the first that fits."""

NOT_LUNG = ("breast", "ribs", "bone", "spine", "vertebra", "humerus", "clavicle", "abdomen", "soft tissue")
"""An opacity or density that lies in one of these is none of the lung's."""

JOINED: dict[str, str] = {
    "lung opacity": "airspace",
    "consolidation": "airspace",
    "pneumonia": "airspace",
    "pacemaker": "implant",
    "valve prosthesis": "implant",
    "nerve stimulator": "implant",
    "cardiac monitor": "implant",
    "medical device": "implant",
    "monitoring leads": "implant",
    "orthopedic hardware": "implant",
    "central venous line": "catheter",
    "catheter": "catheter",
    "peripherally inserted central catheter": "catheter",
    "port catheter": "catheter",
    "pulmonary artery catheter": "catheter",
    "endotracheal tube": "tube",
    "nasogastric tube": "tube",
    "chest tube": "tube",
    "tracheostomy tube": "tube",
    "surgical clips": "surgical material",
}
"""Our names to the classes of the coders."""
CLASSES = frozenset(CODES.values()) | {name for table in QUALIFIED.values() for name in table.values()}
OWN = tuple(name for name in FINDINGS if name not in JOINED) + ("airspace",)
"""Classes of the shared vocabulary."""


class Coded(NamedTuple):
    """One real report and what the coders found in it."""

    report: Report
    classes: frozenset[str]
    unmapped: tuple[str, ...]
    development: bool


def class_of(code: str) -> str | None:
    """The class that a MeSH code names: "Pleural Effusion/left/small" is a pleural effusion."""
    heading, *qualifiers = (part.strip() for part in code.lower().split("/"))
    if heading in ("opacity", "density", "nodule", "mass", "consolidation") and any(
        where in qualifier for qualifier in qualifiers for where in NOT_LUNG
    ):
        return None
    if heading == "cicatrix" and "pleura" in qualifiers:
        return "scarring"
    if heading in QUALIFIED:
        table = QUALIFIED[heading]
        return next((name for word, name in table.items() if word in ("", *qualifiers)), None)
    return CODES.get(heading)


def read_openi(archive: Path) -> Iterator[Coded]:
    """The reports of the archive that were coded, read in place."""
    labels = {
        "FINDINGS": "findings",
        "IMPRESSION": "impression",
        "COMPARISON": "comparison",
        "INDICATION": "indication",
    }
    with tarfile.open(archive) as tar:
        members = sorted((m for m in tar if m.name.endswith(".xml")), key=lambda m: m.name)
        for member in members:
            root = ET.parse(tar.extractfile(member)).getroot()  # noqa: S314 - a published data set
            codes = [code.text or "" for code in root.iter("major")]
            sections = tuple(
                ReportSection(name=labels[part.get("Label")], text=part.text or "")
                for part in root.iter("AbstractText")
                if part.get("Label") in labels and (part.text or "").strip()
            )
            if (
                not codes
                or "No Indexing" in codes
                or not any(section.name in ("findings", "impression") for section in sections)
            ):
                continue
            found = {code: class_of(code) for code in codes}
            yield Coded(
                Report(sections=sections),
                frozenset(name for name in found.values() if name),
                tuple(code for code, name in found.items() if name is None and code != "normal"),
                is_development(Path(member.name).stem),
            )


def is_development(report: str) -> bool:
    return hashlib.sha256(report.encode()).digest()[0] % 2 == 0


def classes_read(reading: ReportFacts, *, hedged: bool = True) -> set[str]:
    """The classes that a reading finds."""
    wanted = ("present", "uncertain") if hedged else ("present",)
    names = {
        JOINED.get(each.name, each.name)
        for each in (*reading.findings, *reading.devices)
        if each.certainty in wanted
    }
    return names & CLASSES


def score_openi(reports: list[Coded], *, hedged: bool = True) -> tuple[dict[str, Score], float]:
    readings, seconds = timed([coded.report for coded in reports])
    scores = {name: Score() for name in sorted(CLASSES)}
    for coded, reading in zip(reports, readings, strict=True):
        found = classes_read(reading, hedged=hedged)
        for name in CLASSES:
            scores[name] = scores[name].plus({name} & found, {name} & coded.classes)
    return scores, len(reports) / seconds


def total(scores: Iterable[Score]) -> Score:
    return Score(*(sum(column) for column in zip(*scores, strict=True)))


def macro(scores: Iterable[Score]) -> float:
    used = [score.f1 for score in scores if score.wanted]
    return sum(used) / len(used) if used else 0.0


# --- printing ----------------------------------------------------------------------------------------------


def print_phantom(count: int) -> bool:
    studies = phantom_studies(count)
    good = True
    for wording in ("build", "held-out"):
        scores, speed = score_phantom(reworded(studies, wording))
        print(f"\nPhantom, wording {wording}: {count} reports, {speed:,.0f} reports/s of one core\n{HEAD}")
        for field, score in scores.items():
            print(score.row(field))
        good &= wording == "build" or scores["presence"].f1 >= PHANTOM_TARGET
    return good


def print_openi(archive: Path) -> bool:
    coded = list(read_openi(archive))
    good = True
    for name, half in (
        ("development", [each for each in coded if each.development]),
        ("test", [each for each in coded if not each.development]),
    ):
        scores, speed = score_openi(half)
        plain, _ = score_openi(half, hedged=False)
        own = [scores[name] for name in OWN]
        print(f"\nOpen-i, {name} half: {len(half)} reports, {speed:,.0f} reports/s of one core\n{HEAD}")
        for each, score in sorted(scores.items(), key=lambda item: -item[1].wanted):
            if score.wanted or score.found:
                print(score.row(each))
        print(total(scores.values()).row("micro, all"))
        print(f"{'macro F1, all':<43}{macro(scores.values()):>7.3f}")
        print(total(own).row("micro, vocabulary"))
        print(f"{'macro F1, vocabulary':<43}{macro(own):>7.3f}")
        print(total(plain.values()).row("micro, all, plain"))
        unmapped = Counter(code.split("/")[0] for each in half for code in each.unmapped)
        codes = sum(unmapped.values())
        print(
            f"codes without a counterpart: {codes}, most often {', '.join(n for n, _ in unmapped.most_common(4))}"
        )
        good &= name == "development" or total(scores.values()).f1 >= OPENI_TARGET
    return good


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder of real data sets"
    )
    arguments.add_argument("--studies", type=int, default=400, help="phantom studies")
    chosen = arguments.parse_args()
    good = print_phantom(chosen.studies)
    archive = chosen.data / "openi" / "NLMCXR_reports.tgz"
    if archive.exists():
        good &= print_openi(archive)
    else:
        print(f"\n{archive} is not there: no real reports")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
