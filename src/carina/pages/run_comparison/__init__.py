"""The page that compares runs: tables, figures and a case browser in one file.

`render_run_comparison` is a pure function from analyses to HTML.
"""
