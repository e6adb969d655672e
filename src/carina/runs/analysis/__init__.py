"""Numbers about runs: pure functions from the steps of runs to tables of estimates with intervals.

`read_runs` opens runs, `group_runs` puts those side by side that share benchmark and protocol, `analyse_group` computes
everything that a report says about a group. Pages and charts are made from the analysis in `carina.pages`.
"""
