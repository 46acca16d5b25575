"""Metrics that give the scores of the official scorers. catalog.py lists them by name.

Their libraries take seconds to import, so functions import them: the names of the metrics are known without them.
"""
