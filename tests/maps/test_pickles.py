"""Pickles are read without running them."""

import collections
import io
import os
import pickle
import struct
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from carina.maps import pickles
from carina.maps.pickles import convert_pickles
from carina.maps.unpickle import RefusedPickleError, load_pickle, read_map
from carina.store.errors import CarinaError

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4) / 16


@given(
    npst.arrays(
        st.sampled_from(["f2", "f4", "f8", ">f4", "i8", "u1", "?"]), npst.array_shapes(min_dims=0, max_dims=4)
    ),
    st.integers(0, 5),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_arrays_of_every_pickle_protocol_are_read(array: np.ndarray, protocol: int, fortran: bool) -> None:
    given_array = np.asarray(array, order="F") if fortran else array
    held = load_pickle(pickle.dumps({"a": [given_array, (1, 2.5, None, "x", b"y", True)]}, protocol))
    np.testing.assert_array_equal(held["a"][0], array)
    assert held["a"][1] == (1, 2.5, None, "x", b"y", True)


def test_numpy_scalars_are_read() -> None:
    for protocol in range(6):
        assert load_pickle(pickle.dumps([np.float32(0.5), np.int64(7), np.bool_(True)], protocol)) == [
            0.5,
            7,
            True,
        ]
    assert load_pickle(pickle.dumps(collections.OrderedDict(a=1))) == {"a": 1}


def test_tensors_are_read_without_torch() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool):
        tensor = torch.arange(24).reshape(2, 3, 4).to(dtype)
        for view in (tensor, tensor.transpose(0, 2), tensor[:, 1:, ::2], tensor[0, 0, 0]):
            np.testing.assert_array_equal(load_pickle(pickle.dumps(view)), view.numpy())
    with pytest.raises(RefusedPickleError, match="BFloat16Storage"):
        load_pickle(pickle.dumps(torch.zeros(2, dtype=torch.bfloat16)))


def test_a_tensor_cannot_reach_beyond_its_storage() -> None:
    torch = pytest.importorskip("torch")
    content = pickle.dumps(torch.zeros(2, 3))
    assert b"K\x02K\x03\x86" in content  # its size
    with pytest.raises(RefusedPickleError, match="beyond its storage"):
        load_pickle(content.replace(b"K\x02K\x03\x86", b"K\x7fK\x7f\x86"))


class Evil:
    def __init__(self, *what: object) -> None:
        self.what = what

    def __reduce__(self) -> tuple:
        return self.what[0], self.what[1:]


@pytest.mark.parametrize(
    "evil",
    [
        Evil(os.system, "touch {}"),
        Evil(eval, "open({!r}, 'w')"),
        Evil(getattr, "x", "upper"),
        Evil(__import__, "os"),
        Evil(np.load, "{}"),
        Evil(io.BytesIO, b"x"),
        Path("x"),
        {1, 2}.union,
        np.array([Evil(os.system, "touch {}")], object),
        np.zeros(2, [("a", "f4")]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array(["abc"]),
        collections.Counter("a"),
    ],
)
def test_other_objects_are_refused_and_not_run(tmp_path: Path, evil: object) -> None:
    mark = tmp_path / "mark"
    if isinstance(evil, Evil):
        evil = Evil(*(part.format(str(mark)) if isinstance(part, str) else part for part in evil.what))
    for protocol in (2, 5):
        with pytest.raises(RefusedPickleError):
            load_pickle(pickle.dumps({"map": evil}, protocol))
    assert not mark.exists()


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_noise_is_refused(content: bytes) -> None:
    with pytest.raises(RefusedPickleError):
        read_map(content)
    endless = content.replace(
        pickle.STOP, b""
    )  # two bytes can be a pickle by chance, but not without its end
    with pytest.raises(RefusedPickleError):
        load_pickle(endless)


def test_arrays_with_inconsistent_shape_or_type_are_refused() -> None:
    honest = pickle.dumps(np.zeros((2, 3), np.float32), 2)
    for before, after, message in (
        (b"K\x02K\x03\x86", b"K\x7fK\x7f\x86", "in 24 bytes"),
        (b"f4", b"O8", "an array of 'O8'"),
        (b"f4", b"f8", "in 24 bytes"),
    ):
        assert before in honest
        with pytest.raises(RefusedPickleError, match=message):
            load_pickle(honest.replace(before, after))


def info(**more: object) -> dict[str, object]:
    return {"map": VALUES[None, None], "prob": 0.75, "task": "Edema", "gt": 1, "cxr_dims": (40, 30), **more}


def test_a_map_is_read_with_image_size_and_probability() -> None:
    kept = read_map(pickle.dumps(info()))
    np.testing.assert_array_equal(kept["map"], VALUES)
    assert kept["dims"].tolist() == [40, 30]
    assert kept["prob"] == 0.75
    assert set(read_map(pickle.dumps({"map": VALUES, "prob": np.zeros(14)}))) == {"map"}
    every = np.arange(14, dtype=np.float32)[None] / 16
    assert (
        read_map(pickle.dumps(info(prob=every)))["prob"] == 5 / 16
    )  # Edema is the sixth of CheXpert's labels
    for bad in ({}, [VALUES], {"map": [1, 2]}, {"map": np.zeros((2, 2, 2))}, {"map": np.zeros((2, 2), bool)}):
        with pytest.raises(RefusedPickleError, match="map"):
            read_map(pickle.dumps(bad))


def test_a_folder_is_converted_by_another_process(tmp_path: Path) -> None:
    source = tmp_path / "pickles"
    (source / "deeper").mkdir(parents=True)
    (source / "p1_Edema_map.pkl").write_bytes(pickle.dumps(info()))
    (source / "deeper" / "p2_Edema_map.pkl").write_bytes(pickle.dumps(info(map=VALUES * 2)))
    (source / "p3_map.pkl").write_bytes(pickle.dumps(Evil(os.system, f"touch {tmp_path / 'mark'}")))
    (source / "p4_map.pickle").write_bytes(b"noise")
    # Eight gigabytes in a few bytes: stated as the length of a byte string that is not there.
    (source / "p5_map.pkl").write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", 8 << 30) + b"x.")
    ticks: list[int] = []

    @contextmanager
    def count(title, total):
        assert (title, total) == ("Pickles", 5)
        yield ticks.append

    converted = convert_pickles(source, tmp_path / "maps", progress=count)
    written, refused = converted.written, converted.refused
    assert sorted(path.name for path in written) == ["p1_Edema_map.npz", "p2_Edema_map.npz"]
    with np.load(tmp_path / "maps" / "p2_Edema_map.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["map"], VALUES * 2)
    assert sorted(Path(name).name for name in refused) == ["p3_map.pkl", "p4_map.pickle", "p5_map.pkl"]
    by_name = {Path(name).name: reason for name, reason in refused.items()}
    assert "holds posix.system" in by_name["p3_map.pkl"]
    assert "not a pickle" in by_name["p4_map.pickle"]
    assert sum(ticks) == 5
    assert not (tmp_path / "mark").exists()


def test_a_file_that_ends_the_child_process_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child is replaced by a program that is killed at every second file, as by a limit."""
    child = tmp_path / "dying.py"
    child.write_text(
        "import json, os, signal, sys\n"
        "pairs = json.load(sys.stdin)\n"
        "for source, target in pairs:\n"
        "    if 'deadly' in source:\n"
        "        os.kill(os.getpid(), signal.SIGXCPU)\n"
        "    open(target, 'w').close()\n"
        "    print(json.dumps([source, None]), flush=True)\n"
    )
    monkeypatch.setattr(pickles, "_CHILD", child)
    source = tmp_path / "pickles"
    source.mkdir()
    for name in ("a", "b_deadly", "c", "d_deadly"):
        (source / f"{name}.pkl").write_bytes(b"")
    converted = convert_pickles(source, tmp_path / "maps")
    written, refused = converted.written, converted.refused
    assert [path.name for path in written] == ["a.npz", "c.npz"]
    assert all("exceeded a limit" in reason for reason in refused.values())
    monkeypatch.setattr(pickles, "_CHILD", tmp_path / "missing.py")
    with pytest.raises(CarinaError, match="does not start"):
        convert_pickles(source, tmp_path / "maps")


def test_no_module_beside_the_pickles_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "pickles"
    source.mkdir()
    (source / "p1_Edema_map.pkl").write_bytes(pickle.dumps(info()))
    (source / "numpy.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()")
    monkeypatch.chdir(source)
    monkeypatch.setenv("PYTHONPATH", str(source))
    converted = convert_pickles(source, tmp_path / "maps")
    assert [path.name for path in converted.written] == ["p1_Edema_map.npz"]
    assert not (tmp_path / "mark").exists()


def test_a_folder_without_pickles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CarinaError, match=r"expected .pkl or .pickle files, found none"):
        convert_pickles(tmp_path, tmp_path / "out")
    with pytest.raises(CarinaError, match="expected a directory"):
        convert_pickles(tmp_path / "none", tmp_path / "out")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x_map.pkl").write_bytes(b"")
    with pytest.raises(CarinaError, match="several pickles called x_map"):
        convert_pickles(tmp_path, tmp_path / "out")
