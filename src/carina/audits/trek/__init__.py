"""Gates for trek conversations; each module declares one, apart from those that several gates share."""
