"""The training loop, for any job: it knows neither the model nor pre-training."""
