"""What is worked out of explain runs: one module a question."""
