"""Tests of ernie_gram/graph."""
