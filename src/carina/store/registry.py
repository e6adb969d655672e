"""The one registry for everything that a user can extend: sources, protocols, models, methods, metrics, exports.

A registry is filled from three places, each looked at only when it is needed:

1. modules of Carina that register what they hold when they are imported,
2. entry points of other installed packages, in the registry's group,
3. whatever the running program registers itself.
"""

import difflib
import pkgutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Generic, TypeVar

from carina.store.errors import CarinaError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named objects of one kind, imported when they are first asked for.

    Args:
        kind: What an entry is called in messages, such as "source".
        group: Entry-point group in which other packages announce modules or objects.
        package: Package whose public modules each register entries; `NAME` is looked for in the module of that name
            first (with `_` for `-`), so that one lookup imports one module.
        modules: Further modules that register entries.
        room_module: Name of a module in which a package of Carina registers entries: each `carina.ROOM.NAME` that
            exists is imported, so that nobody lists the packages.
        entry_type: Class that every entry must be an instance of; None accepts any object.

    Example:
        >>> colours: Registry[int] = Registry("colour", group="carina.colours")
        >>> colours.register("red", 0xFF0000)
        >>> colours["red"]
        16711680
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        package: str | None = None,
        modules: Sequence[str] = (),
        room_module: str | None = None,
        entry_type: type[T] | None = None,
    ) -> None:
        self.kind: Final = kind
        self.group: Final = group
        self._package = package
        self._modules = tuple(modules)
        self._room_module = room_module
        self._entry_type = entry_type
        self._entries: dict[str, T] = {}
        self._has_modules = False
        self._has_entry_points = False
        self._failures: list[str] = []
        """Why entry points could not be loaded."""

    def register(self, name: str, entry: T) -> None:
        """Add an entry.

        Raises:
            TypeError: The entry is not of the type that this registry holds.
            ValueError: Another entry has this name.
        """
        if self._entry_type is not None and not isinstance(entry, self._entry_type):
            raise TypeError(
                f"{self.kind} {name!r}: expected an object of {self._entry_type.__name__}, "
                f"found {type(entry).__name__}"
            )
        if name in self._entries and not _same_object(self._entries[name], entry):
            raise ValueError(f"two entries of the registry of {self.kind}s are called {name!r}")
        self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        """The entry with this name.

        Raises:
            CarinaError: There is none; the message lists the names that there are.
        """
        if name not in self._entries:
            self._import_named(name)
        if name not in self:
            raise CarinaError(self._unknown(name))
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        # Other packages come last: they import Carina, which may look up an entry of its own while it is imported.
        if name not in self._entries:
            self._import_modules()
        if name not in self._entries:
            self._load_entry_points()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> tuple[str, ...]:
        """All names, sorted; imports every module and entry point."""
        self._import_modules()
        self._load_entry_points()
        return tuple(sorted(self._entries))

    def entries(self) -> dict[str, T]:
        """All entries by name, sorted by name."""
        return {name: self._entries[name] for name in self.names()}

    def registered(self) -> dict[str, T]:
        """The entries that modules imported so far have registered; imports nothing."""
        return dict(self._entries)

    def _import_named(self, name: str) -> None:
        module = name.replace("-", "_")
        if self._package and module.isidentifier() and module in self._public_modules():
            import_module(f"{self._package}.{module}")

    def _import_modules(self) -> None:
        if self._has_modules:
            return
        for module in self._public_modules():
            import_module(f"{self._package}.{module}")
        for name in (*self._modules, *self._modules_of_rooms()):
            import_module(name)
        self._has_modules = True

    def _load_entry_points(self) -> None:
        if self._has_entry_points:
            return
        # Before the first is loaded: a package may look up entries while it is imported.
        self._has_entry_points = True
        for point in entry_points(group=self.group):
            package = point.dist.name if point.dist else point.module
            announced = f"{self.kind} {point.name!r} of package {package!r}"
            try:
                is_ignored = self._load_entry_point(point)
            except (Exception, SystemExit) as error:  # a module may call `sys.exit` when it is imported
                failure = f"{announced} cannot be loaded: {error!r}"
                self._failures.append(failure)
                warnings.warn(failure, RuntimeWarning, stacklevel=2)
                continue
            if is_ignored:
                message = f"{announced} is ignored: another {self.kind} has this name"
                warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _load_entry_point(self, point: EntryPoint) -> bool:
        """Load an entry point; return whether it is an object whose name another entry has already.

        A module registers what it holds when it is imported; an object is registered under the name of the point,
        unless its module has done so.
        """
        was_taken = point.name in self._entries and point.module not in sys.modules
        loaded = point.load()
        if ":" not in point.value:
            return False
        if point.name not in self._entries:
            self.register(point.name, loaded)
            return False
        # A function that a decorator has registered is not the entry itself: only its module shows where it is from.
        is_entry = self._entry_type is not None and isinstance(loaded, self._entry_type)
        return (was_taken or is_entry) and not _same_object(self._entries[point.name], loaded)

    def _public_modules(self) -> list[str]:
        if self._package is None:
            return []
        package = sys.modules.get(self._package) or import_module(self._package)
        found = (module.name for module in pkgutil.iter_modules(package.__path__))
        return sorted(name for name in found if not name.startswith("_"))

    def _modules_of_rooms(self) -> list[str]:
        if self._room_module is None:
            return []
        root = __name__.partition(".")[0]
        folders = [Path(folder) for folder in sys.modules[root].__path__]
        found = {path.parent.name for folder in folders for path in folder.glob(f"*/{self._room_module}.py")}
        return [f"{root}.{room}.{self._room_module}" for room in sorted(found)]

    def _unknown(self, name: str) -> str:
        names = self.names()
        close = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        failed = "".join(f" Note: {failure}." for failure in self._failures)
        return f"unknown {self.kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}.{failed}"


def _same_object(one: object, other: object) -> bool:
    """Whether a module that was imported twice registers the same thing again."""
    return one is other or (
        getattr(one, "__module__", None) == getattr(other, "__module__", "")
        and getattr(one, "__qualname__", None) == getattr(other, "__qualname__", "")
    )
