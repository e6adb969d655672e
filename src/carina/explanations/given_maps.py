"""Maps that others made, as an explainer: `files:DIR` answers each probe with the map file of its image and finding.

So they are scored beside controls, on the same probes and by the same rules as the maps of models that `carina explain`
runs, and `carina report` compares them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from carina.cases import Benchmark
from carina.explanations.explainer import MapResult, Probe
from carina.maps.index_files import INDEX, read_index
from carina.maps.map_files import SUFFIXES, frame_of_map, read_map
from carina.maps.region_files import unify_finding
from carina.models import ModelName
from carina.models.fingerprint import fingerprint_of
from carina.models.frame import Frame
from carina.store.errors import CarinaError

KIND: Final = "files"
METHOD: Final = "given"
_END: Final = "_map"


@dataclass(frozen=True, kw_only=True)
class MapFileOptions:
    """Options of maps from files."""

    geometry: str | None = None
    """How a map lies on its image, as for `carina score-maps`; None where maps have the size of their image."""


@dataclass(frozen=True)
class GivenMaps:
    """Map files as an explainer."""

    name: str
    geometry: str | None
    checksum: str
    """Of all files and the index, whatever their order."""
    files: Mapping[tuple[str, str], Path]
    """Map file by image and finding, or by case and an empty finding."""
    images: Mapping[str, tuple[str, ...]]
    """Names of the image of each case."""

    @property
    def method(self) -> str:
        return METHOD

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"geometry": self.geometry, "files": self.checksum}

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        """The maps of the probes.

        Raises:
            CarinaError: A probe has no map file, or it cannot be read.
        """
        return [self._read(probe) for probe in probes]

    def _read(self, probe: Probe) -> MapResult:
        keys = [(probe.case, ""), *((image, _fold(probe.target)) for image in self.images[probe.case])]
        path = next((self.files[key] for key in keys if key in self.files), None)
        if path is None:
            image = self.images[probe.case][0]
            raise CarinaError(f"no map file of image {image!r} and finding {probe.target!r}")
        file = read_map(path)
        size = probe.image.shape
        if file.size is not None and file.size != size:
            raise CarinaError(
                f"{path}: dims: expected the size of the image, {size[0]} x {size[1]} (height x width), found "
                f"{file.size[0]} x {file.size[1]}"
            )
        frame: Frame = frame_of_map(self.geometry, (size[0], size[1]), file.values.shape, path)
        return MapResult(values=file.values, frame=frame, score=file.probability)


def open_given_maps(name: ModelName, options: MapFileOptions, bench: Benchmark) -> GivenMaps:
    """Open the maps in a directory for the probes of a benchmark.

    Raises:
        CarinaError: The directory holds no maps, two are of the same image and finding, or the index is wrong.
    """
    directory = name.path
    if not directory.is_dir():
        raise CarinaError(f"{directory}: expected a directory of maps")
    images = _name_images(bench)
    index = directory / INDEX
    if index.is_file():
        files = {
            (image, _fold(finding)): path for (image, finding), path in read_index(directory, "map").items()
        }
        paths = sorted(set(files.values()))
    else:
        paths = sorted(
            path for path in directory.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file()
        )
        if not paths:
            raise CarinaError(f"{directory}: expected maps ({', '.join(SUFFIXES)}), found none")
        files = _match_names(paths, images, bench)
    return GivenMaps(
        name=name.name,
        geometry=options.geometry,
        checksum=fingerprint_of([*paths, index]),
        files=files,
        images=images,
    )


def _fold(finding: str) -> str:
    """One spelling of a finding: "Pleural Effusion" is "pleural effusion"."""
    return unify_finding(finding).lower()


def _name_images(bench: Benchmark) -> dict[str, tuple[str, ...]]:
    """Names of the image of each probe: its key, with underscores too, and its file's name where no other has it."""
    keys = {
        case.id: case.images[0].key
        for case in bench.where(protocol="ground").without("regions", "views")
        if case.images
    }
    stems = Counter(Path(key).stem for key in set(keys.values()))
    named = {}
    for case, key in keys.items():
        path = Path(key)
        whole = path.with_suffix("").as_posix()
        names = [key, whole, whole.replace("/", "_")] + ([path.stem] if stems[path.stem] == 1 else [])
        named[case] = tuple(dict.fromkeys(names))
    return named


def _match_names(
    paths: Sequence[Path], images: Mapping[str, tuple[str, ...]], bench: Benchmark
) -> dict[tuple[str, str], Path]:
    """Files by the image and finding, or the case, that they are named after."""
    targets = dict(bench.where(protocol="ground").table(["id", "target"]).collect().rows())
    wanted = {(case, ""): {case} for case in images}
    for case, names in images.items():
        finding = str(targets[case])
        for image in names:
            spelled = {f"{image}_{finding}", f"{image}_{finding.replace(' ', '_')}"}
            wanted[image, _fold(finding)] = {f"{one}{end}" for one in spelled for end in (_END, "")}
    stems: dict[str, Path] = {}
    for path in paths:
        if path.stem in stems:
            raise CarinaError(f"{path}: is named as {stems[path.stem].name}; keep one of the two")
        stems[path.stem] = path
    found = {}
    for key, spelled in wanted.items():
        own = sorted(stems[one].name for one in spelled if one in stems)
        if len(own) > 1:
            raise CarinaError(f"{paths[0].parent}: {' and '.join(own)} are of the same image and finding")
        if own:
            found[key] = paths[0].parent / own[0]
    return found
