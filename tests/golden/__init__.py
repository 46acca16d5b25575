"""Recorded results of a fixed, tiny training of every rung: moving code must not change them."""
