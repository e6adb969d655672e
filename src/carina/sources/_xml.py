"""Small XML files of others, as trees; document types and entities are refused, so that no text can grow."""

from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from carina.sources._record import RecordError
from carina.store.documents import read_file
from carina.store.errors import CarinaError

MAX_BYTES: Final = 20_000_000
MAX_DEPTH: Final = 50


def read_xml(path: Path) -> Element:
    """The root of an XML file.

    Raises:
        RecordError: The file cannot be read, is not XML, declares a document type or entities, or is nested too deeply.
    """
    try:
        content = read_file(path, max_bytes=MAX_BYTES)
    except CarinaError as error:
        raise RecordError("", str(error), kind="file") from error
    return parse_xml(content)


def parse_xml(content: bytes) -> Element:
    """As `read_xml`, from the bytes of a file."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise RecordError("", f"nested more than {MAX_DEPTH} levels deep", kind="xml")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def refuse(*_: object) -> int:
        raise RecordError("", "declares a document type or entities, which are not read", kind="xml")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(content, True)  # noqa: FBT003 - the end of the text
        return builder.close()
    except (expat.ExpatError, ValueError, LookupError, AssertionError) as error:
        raise RecordError("", f"not XML: {error}", kind="xml") from error
