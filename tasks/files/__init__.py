"""Official files to examples, and the files that benchmarks take."""
