"""Turn text into an n-gram lexicon, a corpus of units, and masked batches. This package is independent of any model."""
