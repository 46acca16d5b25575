"""Answers of models: their texts as batches, the program that computes them, and exports of it for other software.

`ernie-gram infer` and `ernie-gram fill-mask` answer lines; `ernie-gram convert --to inference` and `--to onnx` export.
"""
