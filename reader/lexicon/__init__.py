"""The n-gram lexicon: counting, the t-test, and the lexicon files (paper, section 3.5 and Algorithm 1)."""
