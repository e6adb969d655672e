"""Names from data as file names: inside their directory, allowed everywhere, and never the same for two names."""

import string
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carina.store.names import LONGEST, safe_name

SAFE = set(string.ascii_letters + string.digits + "._-")
NAMES = st.one_of(
    st.text(),
    st.text(alphabet="./\\ab-_0 \0"),
    st.text(alphabet="ab.", min_size=90, max_size=300),
    st.from_regex(r"[a-z]{1,3}-[0-9a-f]{10}", fullmatch=True),
    st.sampled_from(["con", "NUL", "com1.txt", "aux.", "index", "..", "."]),
)


@pytest.mark.parametrize("name", ["trek", "p000003-s1", "00000032_037.v2", "c-7db117ee228a361f"])
def test_a_plain_name_is_kept(name):
    assert safe_name(name) == name


@given(NAMES)
@example("../../../x")
@example("")
def test_no_name_leaves_the_directory_or_is_refused_by_a_file_system(name):
    made = safe_name(name, reserved=("index",))
    assert set(made) <= SAFE
    assert 1 <= len(made) <= LONGEST
    assert made[0] not in ".-"
    assert made[-1] != "."
    assert made != "index"
    assert Path("out", made).resolve().parent == Path("out").resolve()
    assert not PureWindowsPath(made).is_reserved()


@given(st.lists(NAMES, unique=True, max_size=30))
def test_two_names_never_have_the_same_file(names):
    assert len({safe_name(name) for name in names}) == len(names)


def test_a_name_that_looks_like_the_safe_form_of_another_does_not_meet_it():
    first = safe_name("../../x")
    assert safe_name(first) != first
