import msgspec
import pytest

from carina.pages.marks import study_marks
from carina.pages.study_text import report_sections
from carina.studies import Report, ReportSection, Sentence, Study


def test_sentences_have_number_certainty_and_keys_of_their_subjects(study: Study) -> None:
    sections = {item.name: item.spans for item in report_sections(study, study_marks(study))}
    effusion, gap, tube, _, nodule = sections["findings"]
    assert (effusion.number, effusion.look, effusion.keys) == (2, "present", ("m0",))
    assert (gap.text, gap.number) == (" ", None)
    # It states both certainties; "present" decides the underline.
    assert (tube.certainties, tube.look, tube.keys) == (("present", "absent"), "present", ("m1", "m3"))
    # Through the relation it is also about the effusion.
    assert (nodule.look, nodule.keys) == ("uncertain", ("m0", "m2"))
    (advice,) = sections["recommendation"]
    assert (advice.look, advice.keys) == ("plain", ("m2",))


@pytest.mark.parametrize(
    "spans", [[], [(0, 4), (2, 9)], [(5, 99)], [(6, 9), (0, 4)], [(3, 3), (90, 95)], [(0, 12)]]
)
def test_every_character_is_kept_whatever_the_spans(study: Study, spans: list[tuple[int, int]]) -> None:
    text = "No effusion.\n"
    sentences = tuple(Sentence(section="findings", start=start, end=end) for start, end in spans)
    odd = msgspec.structs.replace(
        study, report=Report(sections=(ReportSection(name="findings", text=text),), sentences=sentences)
    )
    (section,) = report_sections(odd, study_marks(odd))
    assert "".join(span.text for span in section.spans) == text


def test_study_without_report_has_no_sections(study: Study) -> None:
    silent = msgspec.structs.replace(study, report=None)
    assert report_sections(silent, study_marks(silent)) == ()
