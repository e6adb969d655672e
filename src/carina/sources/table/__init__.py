"""A table of one's own: CSV, Parquet or Excel, with a row an image or a finding, and a folder of images."""

from carina.sources.table.reader import read_table

__all__ = ["read_table"]
