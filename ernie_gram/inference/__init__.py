"""Exported models: a program with its parameters and its tokenizer settings, written once and run without a checkpoint.

`ernie-gram convert --to inference` writes such a folder; `ernie-gram infer` and `ernie-gram fill-mask` answer lines
with it.
"""
