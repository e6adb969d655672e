"""Charts of explain runs, as drawings that become SVG and PNG."""
