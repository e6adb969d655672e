"""The interface of an export: the decorator `@exporter` and what an exporter declares."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from carina.cases.benchmark import Benchmark
from carina.exports._folder import Format
from carina.store.options import Option, convert_options, declared_options
from carina.store.registry import Registry

MakeFormat = Callable[..., Format[Any]]
"""From an opened benchmark and the options of the export to the format that writes its cases."""


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A target of `carina export`."""

    name: str
    """As on the command line."""
    title: str
    """What is written, in a few words."""
    make: MakeFormat
    options: tuple[Option, ...]
    examples: tuple[str, ...] = ()
    """Options of example commands, such as "--layout swift"."""

    def convert(self, options: Mapping[str, object] | None) -> dict[str, Any]:
        """The values of all its options.

        Raises:
            CarinaError: An option is unknown or has a wrong value.
        """
        return convert_options(f"export {self.name}", self.options, options)


EXPORTS: Final[Registry[Exporter]] = Registry(
    "export", group="carina.exports", package="carina.exports", entry_type=Exporter
)
"""Every export by name: those of Carina, and those that other packages announce as entry points."""


def exporter(
    *, name: str, title: str, examples: Iterable[str] = ()
) -> Callable[[Callable[..., Format[Any]]], Callable[..., Format[Any]]]:
    """Register an export.

    The function takes the opened benchmark and returns a `Format`, which says what is made of a case and into which
    file it goes. Its keyword-only parameters are the options of the export: annotate each with its type and
    `msgspec.Meta(description=...)`, the help text.

    Args:
        name: As after `--to` on the command line; a module of Carina has the same name, with `_` for `-`.
        title: What is written, in a few words.
        examples: Options of example commands for the help.

    Returns:
        A decorator, which returns the function as it is.

    Example:
        >>> from carina.exports import EXPORTS
        >>> EXPORTS["chat"].title
        'conversations in JSON lines, for trainers and runners'
    """

    def register(make: Callable[[Benchmark], Format[Any]]) -> Callable[..., Format[Any]]:
        EXPORTS.register(
            name,
            Exporter(
                name=name, title=title, make=make, options=declared_options(make), examples=tuple(examples)
            ),
        )
        return make

    return register
