"""The terms of the pre-training objective: one module each, and the list of them, `catalog`."""
