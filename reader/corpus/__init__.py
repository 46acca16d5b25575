"""Text cut into units (tokens and n-grams), and stored as a memory-mapped corpus."""
