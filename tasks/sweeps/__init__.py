"""Sweeps: planned pre-trainings and fine-tunings, training those that are missing, and the table of their results."""
