"""Numbers about localisation maps: pure functions from the scores of maps to tables of estimates with intervals.

`read_maps_runs` opens runs of `carina explain`, `group_maps_runs` puts those side by side that share benchmark and
profile, `analyse_maps` computes everything that a report says about a group, joined with the answers of chat models.
"""
