"""The figures of a report: pure functions from the steps of runs to numbers with intervals."""
