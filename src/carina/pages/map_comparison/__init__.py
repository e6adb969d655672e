"""The page that compares localisation maps: grounding beside controls, recognition and answers, with pictures.

`render_map_comparison` is a pure function from analyses to HTML.
"""
