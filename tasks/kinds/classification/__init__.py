"""Classification: one or two texts -> one of the task's labels."""
