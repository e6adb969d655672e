"""What `carina check` refuses, no command uses."""

import msgspec
import pytest

import carina
from carina.cases import Box, Key, Provenance, check, open_benchmark, write_benchmark
from carina.phantom import make_phantoms
from carina.store.errors import CarinaError
from carina.studies import write_studies
from carina.studies.store import Provenance as StudiesProvenance


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    return make_phantoms(tmp_path_factory.mktemp("sound") / "studies", n=8, seed=2, size=128, workers=1)


@pytest.fixture(scope="module")
def probes(studies):
    return carina.build_ground(studies, studies.path.parent / "probes", workers=1)


def spoil(bench, out, *, at=1, **key):
    """The benchmark with another answer key of the first step of one case."""
    cases = list(bench)
    first, *others = cases[at].steps
    first = msgspec.structs.replace(first, key=Key(**key))
    cases[at] = msgspec.structs.replace(cases[at], steps=(first, *others))
    root = bench.path / bench.manifest.image_root
    write_benchmark(out, cases, Provenance(command="test", image_root=str(root.resolve())))
    return open_benchmark(out), cases[at].id


ABSENT_OPTION = {"options": ("no such option",)}
ABSENT_IMAGE = {"options": ("yes",), "boxes": (Box(image="gone.png", xyxy=(0, 0, 1, 1)),)}


@pytest.mark.parametrize("key", [ABSENT_OPTION, ABSENT_IMAGE], ids=["absent option", "absent image"])
def test_run_explain_and_export_refuse_what_check_refuses(probes, tmp_path, key):
    bench, case = spoil(probes, tmp_path / "spoilt", **key)
    (problem,) = check(bench, files=False).problems
    assert problem.record == case
    for use in (
        lambda: carina.run(bench, "builtin/oracle", tmp_path / "run"),
        lambda: carina.explain(bench, "control/centre", tmp_path / "maps", workers=1),
        lambda: carina.export(bench, tmp_path / "export", to="chat", workers=1),
    ):
        with pytest.raises(CarinaError, match=f"case {case!r}.*carina check"):
            use()
    assert not (tmp_path / "export").exists()
    assert not (tmp_path / "run/run.json").exists()


def test_the_refusal_counts_the_unsound_cases(probes, tmp_path):
    bench, _ = spoil(probes, tmp_path / "one", at=0, **ABSENT_OPTION)
    bench, _ = spoil(bench, tmp_path / "two", at=2, **ABSENT_OPTION)
    with pytest.raises(CarinaError, match=r"2 cases have problems"):
        bench.require_sound()


def test_an_unsound_case_that_is_not_asked_does_not_stop_a_run(probes, tmp_path):
    bench, case = spoil(probes, tmp_path / "spoilt", at=3, **ABSENT_OPTION)
    assert case not in set(carina.run(bench, "builtin/oracle", tmp_path / "run", limit=2).to_frame()["case"])


def test_builds_leave_out_studies_whose_images_check_refuses(studies, tmp_path):
    first, *others = studies
    spoilt = msgspec.structs.replace(
        first, images=tuple(msgspec.structs.replace(image, bits=0) for image in first.images)
    )
    root = str((studies.path / studies.manifest.image_root).resolve())
    write_studies(tmp_path / "spoilt", [spoilt, *others], StudiesProvenance(command="test", image_root=root))
    assert not check(tmp_path / "spoilt", files=False).is_sound
    for build in (carina.build_percept, carina.build_trek, carina.build_ground):
        built = build(tmp_path / "spoilt", tmp_path / build.__name__, workers=1)
        assert len(built)
        assert first.id not in {case.study for case in built}
        assert check(built, files=False).is_sound
