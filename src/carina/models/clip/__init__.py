"""CLIP-style models of others, with weights on this machine: images and texts in, embeddings, patches and scores out.

`interface` needs no torch, and nothing here imports it before a model is opened.
"""
