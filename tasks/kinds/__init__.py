"""The five kinds of tasks: from examples to the model's inputs, and from the model's numbers to predictions."""
