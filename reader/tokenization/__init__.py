"""Text to words, and words to the tokens of a vocabulary."""
