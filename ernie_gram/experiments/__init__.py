"""Experiments of many runs, such as studies and sweeps: the planned runs, training what is missing, and tables."""
