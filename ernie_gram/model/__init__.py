"""The encoder and its layers (paper, section 4.2), under upstream's parameter names."""
