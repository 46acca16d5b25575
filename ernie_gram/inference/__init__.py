"""Exported models: a program with its parameters and its tokenizer settings, written once and run without a checkpoint.

`python -m ernie_gram.export_inference` writes such a folder, `python -m ernie_gram.infer` answers lines with it.
"""
