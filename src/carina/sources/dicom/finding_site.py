"""Where a coded finding of a structured report lies: its laterality and its finding sites, by their codes.

Both stand below the finding or beside it, as modifiers; a finding site may have a laterality of its own. Free text is
never read: a structure passes where its code is known, or its meaning is a name of the vocabulary, and what passes is
Carina's own word.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from carina.sources._locations import locate
from carina.sources.dicom.attributes import Attributes, Tag
from carina.sources.dicom.concepts import Code, read_code
from carina.studies.model import Location
from carina.studies.terms import find_term
from carina.studies.vocabulary import SIDES, Side

_LATERALITY: Final = frozenset((Code("SCT", "272741003"), Code("SRT", "G-C171")))
_FINDING_SITE: Final = frozenset((Code("SCT", "363698007"), Code("SRT", "G-C0E3")))
_TOPOGRAPHICAL_MODIFIER: Final = frozenset((Code("SCT", "106233006"), Code("SRT", "G-A1F8")))
_OTHER_PLACES: Final = _TOPOGRAPHICAL_MODIFIER | {
    Code("DCM", "112003"),  # associated chest component
    Code("DCM", "112005"),  # radiographic anatomy
    Code("DCM", "112006"),  # distribution descriptor
    Code("DCM", "112008"),  # site involvement
}
"""Names of items that say where, or in which part, in a way that is not read."""
_LATERALITY_MEANINGS: Final = frozenset(("laterality", "side"))
_SITE_MEANINGS: Final = frozenset(
    ("finding site", "finding site (attribute)", "anatomic location", "anatomical location", "location", "site",
     "anatomic region", "anatomical region", "region", "anatomic structure", "anatomical structure", "anatomy",
     "body structure", "body site", "body part", "lobe", "zone", "radiographic anatomy", "distribution",
     "topographical modifier")
)  # fmt: skip
"""Meanings under which codes of a hospital's own name such an item: what it says is not known."""
_SIDES: Final[dict[Code, Side]] = {
    Code("SCT", "24028007"): "right", Code("SRT", "G-A100"): "right",
    Code("SCT", "7771000"): "left", Code("SRT", "G-A101"): "left",
    Code("SCT", "51440002"): "bilateral", Code("SRT", "G-A102"): "bilateral",
    Code("SCT", "261129000"): "midline", Code("SRT", "G-A10A"): "midline",
    Code("SCT", "373099004"): "midline", Code("SRT", "R-00319"): "midline",
}  # fmt: skip
"""CID 244 and 247 of PS3.16. "Unilateral" names no side."""
_LUNGS: Final = "lungs"
_PLEURA: Final = "pleura"
_WHOLE: Final = frozenset(("thorax", _LUNGS, _PLEURA))
"""Sites of which only the side counts: an image of the chest shows nothing else."""
_PLEURAL: Final = ("pleura", "thorax")
"""What the names of findings of the pleura hold. Another finding that is denied at the pleura is denied in part."""
_SITES: Final[dict[str, tuple[str, str]]] = {
    # SNOMED CT, SNOMED RT: name
    "51185008": ("T-D3000", "thorax"), "43799004": ("T-D3200", "thorax"), "816094009": ("", "thorax"),
    "39607008": ("T-28000", _LUNGS),
    "3341006": ("T-28100", "right lung"), "44029006": ("T-28500", "left lung"),
    "74101002": ("", "both lungs"),
    "45653009": ("T-28820", "upper lobe"), "40020002": ("T-28825", "middle lobe"),
    "90572001": ("T-28830", "lower lobe"),
    "42400003": ("T-28200", "right upper lobe"), "72481006": ("T-28300", "right middle lobe"),
    "266005": ("T-28400", "right lower lobe"),
    "44714003": ("T-28600", "left upper lobe"), "41224006": ("T-28700", "left lower lobe"),
    "281392002": ("T-D3208", "upper zone"), "281393007": ("T-D3209", "mid zone"),
    "281394001": ("T-D320A", "lower zone"), "86598002": ("T-280A0", "apical zone"),
    "46750007": ("T-28080", "hilum"),
    "3120008": ("T-29000", _PLEURA), "44788007": ("T-29100", f"right {_PLEURA}"),
    "53727004": ("T-29200", f"left {_PLEURA}"),
    "72410000": ("T-D3300", "mediastinum"), "80891009": ("T-32000", "heart"),
    "44567001": ("T-25000", "trachea"), "28700002": ("T-25201", "carina"),
    "15825003": ("T-42000", "aorta"), "113262008": ("T-42070", "aorta"), "57034009": ("T-42300", "aortic arch"),
    "54247002": ("T-42100", "ascending aorta"), "281130003": ("T-D0765", "descending aorta"),
    "32849002": ("T-56000", "esophagus"), "5798000": ("T-D3400", "diaphragm"), "78904004": ("T-D3050", "chest wall"),
    "113197003": ("T-11300", "ribs"), "51299004": ("T-12310", "clavicle"), "79601000": ("T-12280", "scapula"),
    "56873002": ("T-11210", "sternum"), "421060004": ("T-D04FF", "spine"), "122495006": ("T-11502", "spine"),
}  # fmt: skip
_SITES_BY_CODE: Final = {
    code: name
    for snomed_ct, (snomed_rt, name) in _SITES.items()
    for code in (Code("SCT", snomed_ct), Code("SRT", snomed_rt))
    if code.value
}


_SIDED: Final = {"diaphragm": "hemidiaphragm"}
"""What a structure is called with its side, where that is another word."""
_BODY_SIDES: Final[dict[str, Side]] = {"right": "right", "left": "left"}


class StatedLocation(NamedTuple):
    """Where a report says that a finding lies."""

    location: Location | None
    is_exact: bool
    """Whether the location holds all that the report says of it: otherwise a denial may be narrower than it seems."""


class _Site(NamedTuple):
    """A finding site."""

    name: str | None
    """None where it is not known."""
    side: Side | None
    """Its own laterality."""
    is_exact: bool


def read_location(items: Sequence[Attributes], finding: str) -> StatedLocation:
    """What the items below and beside a finding say of its place; nothing where two sides contradict each other.

    Args:
        items: The items.
        finding: Name of the finding.
    """
    side, is_exact = _read_sides(items)
    is_exact = is_exact and not any(_is_of(item, _OTHER_PLACES) for item in items)
    sides = {side} if side else set()
    names: list[str] = []
    for site in map(_read_site, _select(items, _FINDING_SITE, _SITE_MEANINGS)):
        is_exact = is_exact and site.is_exact
        if site.name is None:
            continue
        named = next((one for one in SIDES if site.name.startswith(f"{one} ")), None)
        if named and (site.side or side) not in (None, named):
            return StatedLocation(None, is_exact=False)
        own = _BODY_SIDES.get(named or "") or site.side or side
        sides |= {own} if own else set()
        whole = site.name.removeprefix(f"{named} ")
        if whole in _WHOLE or whole == "lung":
            is_exact = is_exact and (whole == "lung" or _is_whole(whole, finding))
            continue
        known = _name_structures(whole, own)
        is_exact = is_exact and bool(known)
        names += known
    if side in SIDES and sides != {side}:
        return StatedLocation(None, is_exact=False)
    return StatedLocation(_make_location(sides, names), is_exact)


def states_place(items: Iterable[Attributes]) -> bool:
    """Whether any item is about a laterality or a finding site."""
    names = _LATERALITY | _FINDING_SITE | _OTHER_PLACES
    return any(_select(items, names, _LATERALITY_MEANINGS | _SITE_MEANINGS))


def is_heading_of_place(container: Attributes, finding: str) -> bool:
    """Whether a container is named after a part of the body, such as "Right lung": what it denies may be elsewhere."""
    heading = container.first(Tag.CONCEPT_NAME)
    name = _SITES_BY_CODE.get(read_code(heading))
    if name is None:
        term = find_term(heading.text(Tag.CODE_MEANING), "anatomy")
        name = None if term is None else term.name
    return name is not None and not _is_whole(name, finding)


def _is_whole(name: str, finding: str) -> bool:
    """Whether a finding that is not at a site is not in the chest at all."""
    return name in _WHOLE and (name != _PLEURA or any(part in finding for part in _PLEURAL))


def _make_location(sides: set[Side], names: list[str]) -> Location | None:
    stated = locate(names) or Location()
    both = "bilateral" in sides or sides.issuperset(SIDES)
    side: Side | None = "bilateral" if both else next(iter(sides)) if len(sides) == 1 else None
    location = replace(stated, side=side)
    return location if location != Location() else None


def _name_structures(name: str, side: Side | None) -> list[str]:
    """Names of the vocabulary for a structure on a side, or on both; those without a side where it has no others."""
    sides = SIDES if side == "bilateral" else (side,) if side in SIDES else ()
    terms = [find_term(f"{one} {_SIDED.get(name, name)}", "anatomy") for one in sides]
    if not terms or None in terms:
        terms = [find_term(name, "anatomy")]
    return [term.name for term in terms if term is not None]


def _select(
    items: Iterable[Attributes], names: frozenset[Code], meanings: frozenset[str]
) -> Iterator[Attributes]:
    """Items that are about this by their name, whatever the type of their value."""
    for item in items:
        name = item.first(Tag.CONCEPT_NAME)
        if read_code(name) in names or name.text(Tag.CODE_MEANING).lower() in meanings:
            yield item


def _read_sides(items: Iterable[Attributes]) -> tuple[Side | None, bool]:
    """The laterality that items state, and whether it is understood."""
    stated = {
        _SIDES.get(read_code(item.first(Tag.CONCEPT_CODE))) if _is_of(item, _LATERALITY) else None
        for item in _select(items, _LATERALITY, _LATERALITY_MEANINGS)
    }
    return (next(iter(stated)), None not in stated) if len(stated) == 1 else (None, not stated)


def _read_site(item: Attributes) -> _Site:
    concept, modifiers = item.first(Tag.CONCEPT_CODE), item.items(Tag.CONTENT)
    name = _SITES_BY_CODE.get(read_code(concept)) if _is_of(item, _FINDING_SITE) else None
    if name is None and _is_of(item, _FINDING_SITE):
        term = find_term(concept.text(Tag.CODE_MEANING), "anatomy")
        name = None if term is None else term.name
    side, is_exact = _read_sides(modifiers)
    has_modifier = any(_is_of(each, _TOPOGRAPHICAL_MODIFIER) for each in modifiers)
    return _Site(name, side, is_exact and name is not None and not has_modifier)


def _is_of(item: Attributes, names: frozenset[Code]) -> bool:
    return read_code(item.first(Tag.CONCEPT_NAME)) in names
