"""Gates for percept cases: masks, points and options, measured again from the stored regions; one gate per module."""
