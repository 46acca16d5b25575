"""Examples, encoded samples and batches: the base of every other package of tasks."""
