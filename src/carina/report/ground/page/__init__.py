"""The page of explain runs."""
