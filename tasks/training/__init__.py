"""Fine-tuning: settings, splits, networks, the job of the training loop and its evaluation."""
