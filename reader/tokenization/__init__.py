"""Split text into words, and words into tokens of a vocabulary."""
