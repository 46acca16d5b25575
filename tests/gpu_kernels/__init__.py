"""Where the operations of our programs would run on a GPU, worked out without one.

`registered.tsv` lists the kernels that Paddle has for GPUs. `placement` decides as Paddle's executor does, for each
operation of a program, whether it runs on the GPU or on the host, and which tensors are copied between the two.
"""
