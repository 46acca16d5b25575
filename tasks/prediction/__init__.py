"""Predictions with a fine-tuned model, for official splits and for texts of the user."""
