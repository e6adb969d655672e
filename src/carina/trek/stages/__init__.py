"""Questions of the eight stages, one module for each stage (two for stage 3)."""
