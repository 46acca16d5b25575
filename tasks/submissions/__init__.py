"""The files that benchmarks take: one function for each form, from predictions to the bytes of a file."""
