"""Studies: variants of pre-training with their fine-tunings, from one text, in one file of results."""
