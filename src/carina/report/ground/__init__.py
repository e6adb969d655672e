"""Localisation maps in the report: grounding beside recognition, controls, and the answers of the same studies.

>>> write_ground([Path("maps/gem"), Path("maps/gradcam")], Path("report"))
"""

from carina.report.ground.read import is_maps
from carina.report.ground.write import GroundPaths, write_ground

__all__ = ["GroundPaths", "is_maps", "write_ground"]
