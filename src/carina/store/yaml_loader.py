"""The YAML that Carina reads: plain values, and integers of a sensible length.

YAML 1.1 takes `1:30` for 90, in base 60; YAML 1.2 takes it for text, and so does this loader. Apart from the surprise,
the time to read such a number grows with the square of its length.
"""

import re
from typing import Any, Final

import yaml

MAX_NUMBER_LENGTH: Final = 100
"""Characters of a number in a YAML file: more than the 64 binary digits of the largest number that is of use."""
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")


class PlainLoader(yaml.SafeLoader):
    """PyYAML's safe loader without numbers in base 60."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ANN401 - as PyYAML has it
        """The tag of a value; a number in base 60 is text."""
        if kind is yaml.ScalarNode and implicit[0] and _BASE_60.fullmatch(value):
            return self.DEFAULT_SCALAR_TAG
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - as PyYAML has it
        """A mapping, in which every key stands once."""
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise yaml.constructor.ConstructorError(None, None, f"{repeated!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _construct_number(loader: PlainLoader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node)
    if ":" in text:  # with the tag !!int or !!float
        raise yaml.constructor.ConstructorError(None, None, "a number in base 60", node.start_mark)
    if len(text) > MAX_NUMBER_LENGTH:
        raise yaml.constructor.ConstructorError(
            None,
            None,
            f"a number of {len(text):,} characters, more than {MAX_NUMBER_LENGTH}",
            node.start_mark,
        )
    is_integer = node.tag == "tag:yaml.org,2002:int"
    number: float = loader.construct_yaml_int(node) if is_integer else loader.construct_yaml_float(node)
    return number


for _tag in ("int", "float"):
    PlainLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _construct_number)
