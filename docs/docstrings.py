"""Runs the examples in docstrings: `python docs/docstrings.py [MODULE...]`; exit code 1 if one prints something else.

Every example runs in a directory of its own that holds what `prepare_examples` makes, so that it can begin with
`"studies"`, `"bench"` or `"runs/reader"`. An example that names nothing of it runs in an empty directory.
"""

import doctest
import json
import pickle
import shutil
import sys
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory

import numpy as np
import torch

import carina

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def prepare_examples(directory: Path) -> None:
    """Make the sets and runs that examples begin with.

    | directory | what it is |
    |---|---|
    | `studies` | 40 phantom studies |
    | `bench`, `conversations`, `probes` | benchmarks of percept, trek and ground |
    | `runs/reader`, `runs/majority` | two models evaluated on `bench` |
    | `maps/asymmetry` | localisation maps of a built-in model on 16 of the `probes` |
    | `map-files`, `regions.json`, `pickled-maps` | maps of another program, and the regions that they should show |
    | `checkpoint.pt` | a pickled checkpoint of one tensor |
    """
    with chdir(directory):
        carina.make_phantoms("studies", n=40, seed=2, size=128, workers=1)
        carina.build_percept("studies", "bench", per_cell=1, workers=1)
        carina.build_trek("studies", "conversations", workers=1)
        carina.build_ground("studies", "probes", workers=1)
        for name in ("reader", "majority"):
            carina.run("bench", f"builtin/{name}", f"runs/{name}")
        carina.explain("probes", "builtin/asymmetry", "maps/asymmetry", limit=16, controls=False, workers=1)
        _write_map_files()
        torch.save({"visual.proj": torch.zeros(4, 4)}, "checkpoint.pt")


def _write_map_files() -> None:
    """Maps of four images: two of them have their highest values within the region, two outside."""
    regions = {}
    for name in ("map-files", "pickled-maps"):
        Path(name).mkdir()
    for number in range(4):
        name = f"patient{number}_study1_view1_frontal"
        regions[name] = {"Edema": carina.Region.from_box(4, 4, 8, 8, height=32, width=32).to_coco()}
        values = np.zeros((8, 8), np.float32)
        values[1 + number : 3 + number, 1:3] = 1
        np.save(f"map-files/{name}_Edema_map.npy", values)
    Path("regions.json").write_text(json.dumps(regions), encoding="utf-8")
    Path("pickled-maps", f"{name}_Edema_map.pkl").write_bytes(pickle.dumps({"map": values[None, None]}))


def find_examples(names: list[str]) -> list[doctest.DocTest]:
    """The docstrings with examples, of all modules or of those that are named."""
    if not names:
        names = [module.name for module in walk_packages(carina.__path__, "carina.")]
    finder = doctest.DocTestFinder(exclude_empty=True)
    found: dict[str, doctest.DocTest] = {}
    for name in ["carina", *names]:
        for test in finder.find(import_module(name)):
            found.setdefault(test.name, test)
    return [test for test in found.values() if test.examples]


def main() -> int:
    """Run the examples of all modules, or of the modules named as arguments.

    Returns:
        Exit code: 1 if an example fails or prints something else.
    """
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    with TemporaryDirectory() as scratch:
        ready = Path(scratch) / "ready"
        ready.mkdir()
        prepare_examples(ready)
        tests = find_examples(sys.argv[1:])
        for number, test in enumerate(tests):
            directory = Path(scratch) / str(number)
            if any(f'"{path.name}' in test.docstring for path in ready.iterdir()):
                shutil.copytree(ready, directory)
            else:
                directory.mkdir()
            with chdir(directory):
                runner.run(test)
            shutil.rmtree(directory)
    failed, attempted = runner.summarize(verbose=False)
    print(f"{len(tests)} docstrings, {attempted} examples, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
