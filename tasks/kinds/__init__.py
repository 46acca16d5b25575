"""The kinds of tasks, one folder each; what several of them share is beside the folders. catalog.py lists them.

In a folder, example.py has the record of an example and makes it of a row of a file; kind.py declares the kind, makes
the model's inputs of examples, and predictions of the model's numbers; network.py has the layers above the encoder and
the losses, and is the only one that imports Paddle.
"""
