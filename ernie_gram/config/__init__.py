"""Reading and checking configurations. Nothing here imports Paddle."""
