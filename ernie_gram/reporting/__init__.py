"""The page of `ernie-gram report`: data of runs for the template in templates/, with Matplotlib's figures inline."""
