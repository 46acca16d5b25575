"""The ERNIE-Gram model and its pre-training."""
