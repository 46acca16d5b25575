"""Pre-training: the network, the objective and its terms, the run that trains them (paper, section 3)."""
