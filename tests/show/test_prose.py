import msgspec
import pytest

from carina.show.marks import marks_of
from carina.show.prose import paragraphs
from carina.studies import Report, ReportSection, Sentence, Study


def test_sentences_carry_certainty_number_and_what_they_speak_of(study: Study) -> None:
    sections = {item.name: item.runs for item in paragraphs(study, marks_of(study))}
    effusion, gap, tube, _, nodule = sections["findings"]
    assert (effusion.number, effusion.look, effusion.keys) == (2, "present", ("m0",))
    assert (gap.text, gap.number) == (" ", None)
    # Both certainties are told; the one that is there decides the underline.
    assert (tube.certainties, tube.look, tube.keys) == (("present", "absent"), "present", ("m1", "m3"))
    # Through the relation it also speaks of the effusion.
    assert (nodule.look, nodule.keys) == ("uncertain", ("m0", "m2"))
    (advice,) = sections["recommendation"]
    assert (advice.look, advice.keys) == ("plain", ("m2",))


@pytest.mark.parametrize(
    "spans", [[], [(0, 4), (2, 9)], [(5, 99)], [(6, 9), (0, 4)], [(3, 3), (90, 95)], [(0, 12)]]
)
def test_no_character_is_lost_whatever_the_spans(study: Study, spans: list[tuple[int, int]]) -> None:
    text = "No effusion.\n"
    sentences = tuple(Sentence(section="findings", start=start, end=end) for start, end in spans)
    odd = msgspec.structs.replace(
        study, report=Report(sections=(ReportSection(name="findings", text=text),), sentences=sentences)
    )
    (paragraph,) = paragraphs(odd, marks_of(odd))
    assert "".join(run.text for run in paragraph.runs) == text


def test_a_study_may_have_no_report(study: Study) -> None:
    silent = msgspec.structs.replace(study, report=None)
    assert paragraphs(silent, marks_of(silent)) == ()
