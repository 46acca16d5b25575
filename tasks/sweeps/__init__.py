"""Many fine-tunings: the plan of their runs, the runs, and tables of their results."""
