"""Localisation maps of models: made by an explanation method, scored against expert regions, and checked.

`explain` makes, scores and checks the maps; `open_map_run` opens the run that it wrote. Metrics: `carina.maps`.
"""

from carina.explanations.map_run import MapRun, explain, open_map_run
from carina.explanations.methods import METHODS, Cost, Method, Need, method

__all__ = ["METHODS", "Cost", "MapRun", "Method", "Need", "explain", "method", "open_map_run"]
