"""A run's folder: lock, identity, checkpoints, log. Nothing here imports Paddle."""
