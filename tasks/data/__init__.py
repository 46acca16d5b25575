"""Examples, encoded samples and batches: what every other package of tasks is built on."""
