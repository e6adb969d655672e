"""Probes that give nothing to score, and images that are missing: a sentence, and one pass over the set."""

import pytest
from tests.explanations.test_map_parts import probe
from typer.testing import CliRunner

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.cli import app
from carina.explanations.map_parts import MapOptions, make_maps
from carina.explanations.maps import open_maps
from carina.explanations.scoring import score_map_run
from carina.store.errors import CarinaError, MapsError
from carina.store.parts import PartReader
from carina.studies import write_png


@pytest.fixture
def mixed(tmp_path):
    """Probes of which the first, by finding and path, is negative."""
    cases = []
    for number in range(4):
        case, pixels = probe(number, "mass", present=bool(number))
        write_png(tmp_path / "bench" / case.images[0].key, pixels)
        cases.append(case)
    write_benchmark(tmp_path / "bench", cases, Provenance(command="made by hand"))
    return open_benchmark(tmp_path / "bench")


def test_explaining_negative_probes_alone_is_refused_with_a_sentence(mixed, tmp_path):
    words = ["explain", str(mixed.directory), "--model", "builtin/asymmetry", "-o", str(tmp_path / "run")]
    result = CliRunner().invoke(app, [*words, "--limit", "1"])
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "none of the 1 selected probes is positive" in said
    assert "larger limit" in said
    assert not (tmp_path / "run").exists()


def test_maps_of_absent_findings_alone_are_not_scored(mixed, tmp_path):
    make_maps(mixed, "control/centre", tmp_path / "run", MapOptions(limit=1))
    with pytest.raises(CarinaError, match="none of the 1 maps to score is of a present finding"):
        score_map_run(mixed, open_maps(tmp_path / "run"), controls=())
    assert not (tmp_path / "run" / "scoring.json").exists()


def test_missing_images_are_looked_up_in_one_pass(tmp_path, monkeypatch):
    """Each missing image is named with its part, row and case, which needs the whole set: once, not once an image."""
    scans = []
    rows = PartReader.rows

    def count(self, leaves, **options):
        if any("images" in leaf for leaf in leaves):
            scans.append(self.path.name)
        return rows(self, leaves, **options)

    counts = []
    for number in (6, 24):
        folder = tmp_path / str(number)
        cases = [probe(place, "mass", present=True)[0] for place in range(number)]
        write_benchmark(folder, cases, Provenance(command="made by hand"), part_size=2)
        bench = open_benchmark(folder)
        read = list(bench)
        scans.clear()
        with monkeypatch.context() as patched:
            patched.setattr(PartReader, "rows", count)
            for case in read:
                with pytest.raises(
                    CarinaError, match=rf"case {case.id!r}, image '{case.images[0].key}' is missing"
                ):
                    bench.pixels(case.images[0])
        counts.append(len(scans))
    # One pass over each part: 3 parts and 12 parts.
    assert counts == [3, 12]


def test_explaining_with_all_images_missing_names_the_first(tmp_path):
    write_benchmark(
        tmp_path / "bench", [probe(1, "mass", present=True)[0]], Provenance(command="made by hand")
    )
    bench = open_benchmark(tmp_path / "bench")
    with pytest.raises(MapsError, match=r"none of 1 probes has a map.*image 'i1\.png' is missing"):
        make_maps(bench, "builtin/asymmetry", tmp_path / "run", MapOptions())
