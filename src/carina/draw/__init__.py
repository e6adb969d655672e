"""Drawing on images: regions, points, text, legends and sheets. Knows pictures and regions, nothing more."""

from carina.draw.image import Gray, Rgb, Size, blank, fitted, scale, scale_mask, size_of, to_rgb
from carina.draw.layers import Layer, outline, overlay, paint, tint
from carina.draw.palette import (
    HUES,
    INK,
    MUTED,
    PALETTE,
    PANEL,
    WHITE,
    Colour,
    colour_of,
    contrast,
    ink_on,
    luminance,
)
from carina.draw.points import Point, put_points
from carina.draw.sheet import GAP, LegendEntry, Panel, legend, montage, put_picture, stack
from carina.draw.text import line_height, put_label, put_text, shorten, text_size, wrap

__all__ = [
    "GAP",
    "HUES",
    "INK",
    "MUTED",
    "PALETTE",
    "PANEL",
    "WHITE",
    "Colour",
    "Gray",
    "Layer",
    "LegendEntry",
    "Panel",
    "Point",
    "Rgb",
    "Size",
    "blank",
    "colour_of",
    "contrast",
    "fitted",
    "ink_on",
    "legend",
    "line_height",
    "luminance",
    "montage",
    "outline",
    "overlay",
    "paint",
    "put_label",
    "put_picture",
    "put_points",
    "put_text",
    "scale",
    "scale_mask",
    "shorten",
    "size_of",
    "stack",
    "text_size",
    "tint",
    "to_rgb",
    "wrap",
]
