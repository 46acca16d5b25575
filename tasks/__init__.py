"""Fine-tuning: tasks, their official files, metrics and predictions."""
