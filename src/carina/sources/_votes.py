"""What several readers say of the images of a study, each alone: how their statements become findings."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from carina.sources._defects import RecordPlace
from carina.sources._study_draft import StudyDraft
from carina.studies.vocabulary import ABNORMALITY, Certainty

_STRONGEST_FIRST: Final[tuple[Certainty, ...]] = ("present", "uncertain", "absent")


class Vote(NamedTuple):
    """What one reader says of one label on one image."""

    image: str
    reader: str
    label: str
    certainty: Certainty = "present"
    words: str = ""
    """What to look up in the vocabulary, where that is not the label."""
    place: RecordPlace | None = None
    """Where it stands, for defects; None where that is the place that the draft reads."""


def state_votes(draft: StudyDraft, votes: Iterable[Vote], readers: Mapping[str, Collection[str]]) -> None:
    """State in a draft what the readers say: present where at least half of the readers of an image say so.

    What fewer state, or state as uncertain, is uncertain. A finding of several images is what it is on the image that
    shows it best. That an image is normal is stated where no reader states anything else. Later statements about the
    same findings, such as regions of single readers, change nothing of this.

    Args:
        draft: The study.
        votes: What the readers say. A finding that one reader calls present and absent on one image is disputed; of
            other votes of one reader about one finding, the first counts.
        readers: Who looked at each image, by its key; a reader without votes counts, too.
    """
    labels: dict[str, str] = {}
    stated: defaultdict[str, dict[tuple[str, str], Certainty]] = defaultdict(dict)
    here = draft.defects.place
    plain: dict[tuple[str, Certainty, str], str] = {}
    """Names of statements that mean what their certainty says: reading them again would count no defect."""
    for vote in votes:
        draft.defects.place = vote.place or here
        said = (vote.label, vote.certainty, vote.words)
        known_name = plain.get(said)
        if known_name is not None:
            name, certainty = known_name, vote.certainty
        else:
            name, stated_certainty = draft.read_statement(vote.label, vote.certainty, words=vote.words)
            if not name or stated_certainty is None:
                continue
            certainty = stated_certainty
            if certainty == vote.certainty:
                plain[said] = name
            labels.setdefault(name, vote.label.strip())
        known = stated[name].setdefault((vote.image, vote.reader), certainty)
        if known != certainty:
            draft.defects["conflict"] += 1
            if "uncertain" not in (known, certainty):
                draft.dispute(name)
    draft.defects.place = here
    is_normal = all(set(own.values()) == {"absent"} for own in stated.values())
    is_shared = len({reader for own in readers.values() for reader in own}) > 1
    for name, own in stated.items():
        decided = _decide_finding(own, readers)
        if name == ABNORMALITY and decided == "absent" and not is_normal:
            continue
        by = [reader for (_, reader), one in own.items() if one == "present"] if is_shared else []
        draft.decide(name, labels[name], decided, stated_by=by)


def _decide_finding(
    own: Mapping[tuple[str, str], Certainty], readers: Mapping[str, Collection[str]]
) -> Certainty:
    """What the votes about a finding come to: what it is on the image that shows it best."""
    if len(readers) == 1:
        (all_readers,) = readers.values()
        return _decide(list(own.values()), len(all_readers))
    of_images: defaultdict[str, list[Certainty]] = defaultdict(list)
    for (image, _), certainty in own.items():
        of_images[image].append(certainty)
    outcomes = {_decide(votes, len(readers[image])) for image, votes in of_images.items()}
    return next(one for one in _STRONGEST_FIRST if one in outcomes)


def _decide(votes: Sequence[Certainty], readers: int) -> Certainty:
    """What the votes on one image come to."""
    if votes.count("absent") == len(votes):
        return "absent"
    return "present" if 2 * votes.count("present") >= readers else "uncertain"
