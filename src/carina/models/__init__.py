"""Models behind one registry: `open` a model by its name, whatever runs it.

>>> from carina import models
>>> models.parse_model_name("sam:weights/medsam").capabilities
('segments',)

Nothing here imports torch, onnxruntime or inspect-ai before a model is opened, so that everything else works without
them.
"""

from carina.models.conversation import ChatModel, ChatTurn, ImageReader, Reply, RequestOptions, Sampling
from carina.models.registry import (
    MODELS,
    Capability,
    ModelIdentity,
    ModelKind,
    ModelName,
    ModelOptions,
    identify_model,
    model_kind,
    parse_model_name,
    parse_model_option,
)
from carina.models.registry import open_model as open  # noqa: A004 - models.open, as every verb of a room
from carina.models.segmenter import Box, Point, Prompts, Proposal, Segmenter

__all__ = [
    "MODELS",
    "Box",
    "Capability",
    "ChatModel",
    "ChatTurn",
    "ImageReader",
    "ModelIdentity",
    "ModelKind",
    "ModelName",
    "ModelOptions",
    "Point",
    "Prompts",
    "Proposal",
    "Reply",
    "RequestOptions",
    "Sampling",
    "Segmenter",
    "identify_model",
    "model_kind",
    "open",
    "parse_model_name",
    "parse_model_option",
]
