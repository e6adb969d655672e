"""CLIP-style models with weights on this machine: images and texts in; embeddings, patches and scores out.

`interface` needs no torch, and nothing here imports it before a model is opened.
"""

from carina.models.clip import kinds as _kinds  # noqa: F401 - registers the kinds
