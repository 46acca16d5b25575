"""The page of `ernie-gram report`: it reads the folders of runs, and writes HTML with inline figures."""
