"""Text -> n-gram lexicon -> units -> masked batches. Nothing here knows of any model."""
