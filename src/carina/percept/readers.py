"""How readers do on the lesions of percept cases: whether it is present, and the mask of it.

The questions of percept are not asked of readers. What is known of them is what they say about presence and how their
masks overlap, against each other or against the truth: the human ceiling of a report.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from carina.cases import Case
from carina.cases.reader_scores import (
    ReaderFacts,
    ScoredTruth,
    add_presence,
    score_comparisons,
    score_each_reader,
)
from carina.percept.facts import PerceptCaseFacts
from carina.percept.lesions import LESIONS
from carina.percept.rules import Ineligible
from carina.percept.truth import find_contours
from carina.studies import Studies, Study
from carina.studies.readers import FusionRule, presence_votes, silent_readers

FIRST: Final = FusionRule(fusion="first")
"""How several readers become one where masks are used as they were drawn."""


def add_readers(cases: Iterable[Case], studies: Studies, rule: FusionRule | None) -> list[Case]:
    """The cases, each with how the readers of its study do; as they are where a study has one reader.

    Args:
        cases: Cases whose truth people drew, and cases without a lesion.
        studies: The studies that they are made from.
        rule: How masks of several readers become one; None for the first reader's.
    """
    made = list(cases)
    by_study: dict[str, list[int]] = {}
    for place, case in enumerate(made):
        by_study.setdefault(case.study, []).append(place)
    for study in studies.pick(by_study):
        for place in by_study[study.id]:
            readers = _score_readers(made[place], study, rule or FIRST)
            if readers:
                facts = replace(PerceptCaseFacts.of(made[place]), readers=readers)
                made[place] = msgspec.structs.replace(made[place], facts=facts.rows())
    return made


def _score_readers(case: Case, study: Study, rule: FusionRule) -> Mapping[str, ReaderFacts]:
    lesion, image = LESIONS[case.target or ""], study.image(case.images[0].key)
    votes = presence_votes(study, lesion.finding)
    truth = _find_truth(case)
    if truth is None:
        return add_presence({}, votes)
    try:
        contours = find_contours(study, image, lesion)
    except Ineligible:  # the truth is by a segmenter, from boxes
        return add_presence({}, votes)
    drawn = {name: [annotation for _, annotation in own] for name, own in contours.items()}
    silent = silent_readers(study, lesion.finding, image.key)
    scores = score_each_reader(drawn, rule, looked=len(votes), silent=silent)
    present = [f for f in study.findings if f.name == lesion.finding and f.certainty == "present"]
    scores |= score_comparisons(truth, present, image.key)
    # No map and no box is asked for.
    masks = {name: ReaderFacts(iou=one.iou, dice=one.dice, points=one.points) for name, one in scores.items()}
    return add_presence(masks, votes)


def _find_truth(case: Case) -> ScoredTruth | None:
    """The truth of a case; None where there is no lesion, or no person drew it."""
    facts = PerceptCaseFacts.of(case)
    name = facts.region("truth")
    if name is None or facts.sources[name].reviewed != "yes":
        return None
    region = case.region(name).region
    return ScoredTruth(region, (region,))
