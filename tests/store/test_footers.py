"""What is learnt of a part is given up with it."""

import gc

import pyarrow.parquet as pq

from carina.store import parts
from carina.studies import Image, Provenance, Study, open_studies, write_studies


def held() -> int:
    """Footers in memory, whether or not anything but a cycle refers to them."""
    # By type alone: some objects of others warn when they are asked what they are.
    return sum(type(found) is pq.FileMetaData for found in gc.get_objects())


def test_footers_of_parts_that_were_read_do_not_pile_up(tmp_path):
    image = Image(key="a.png", view="PA", width=4, height=4)
    studies = [
        Study(id=f"s{number}", patient="p", source="test", order=number, images=(image,))
        for number in range(40)
    ]
    write_studies(tmp_path, studies, Provenance(command="test"), part_size=1)
    gc.collect()
    gc.disable()
    try:
        before = held()
        assert len(list(open_studies(tmp_path))) == 40
        assert open_studies(tmp_path).columns("id").num_rows == 40
        assert held() - before <= parts._FOOTERS
    finally:
        gc.enable()


def test_a_footer_is_read_anew_when_its_file_has_changed(tmp_path):
    image = Image(key="a.png", view="PA", width=4, height=4)
    one, other = (Study(id=name, patient="p", source="test", order=0, images=(image,)) for name in ("a", "b"))
    for some in ([one], [one, other]):
        write_studies(tmp_path, some, Provenance(command="test"), replace=True)
        assert list(open_studies(tmp_path)) == some
