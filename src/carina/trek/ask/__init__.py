"""The makers of questions: one module a step of the reading, in the order of the stages."""
