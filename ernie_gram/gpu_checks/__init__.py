"""The checks of `python -m ernie_gram.gpu_check`: whether this machine's GPUs compute what they should."""
