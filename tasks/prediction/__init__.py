"""Predictions with a fine-tuned model, of official splits and of texts of one's own."""
