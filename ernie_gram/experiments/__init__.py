"""Experiments of many runs, such as ablations and sweeps: the planned runs, training what is missing, and tables."""
