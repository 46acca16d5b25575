"""The checks of `ernie-gram gpu-check`: whether this machine's GPUs compute what they should."""
