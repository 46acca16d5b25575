"""The kinds of tasks; catalog.py lists them.

A kind is a module, or a folder. It has the record of an example, which it makes of a row of a file; it makes the
model's inputs of examples, and predictions of the model's numbers. networks.py has the layers above the encoder and the
losses of all kinds, and is the only module that imports Paddle.
"""
