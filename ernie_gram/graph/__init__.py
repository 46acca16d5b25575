"""What the model and the training loop both say about the static program that is being built."""
