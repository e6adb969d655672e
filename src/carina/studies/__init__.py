"""Studies: what was imaged, and what experts say is there."""
