"""Gates for the cases of every protocol; each module declares one."""
