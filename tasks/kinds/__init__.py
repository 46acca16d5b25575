"""The kinds of tasks; catalog.py lists them.

A kind is a module. It defines its examples, and converts rows of files to examples, examples to inputs of the model,
and scores of the model to predictions. networks.py has the layers above the encoder and the losses of all kinds, and is
the only module that imports Paddle.
"""
