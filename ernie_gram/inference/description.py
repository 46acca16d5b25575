"""The names in the folder of an exported model, which other software runs: the commands here take the model itself.

model.json        Paddle's program; model.pdiparams: its parameters
inference.json    what the program reads and computes, and how text becomes token IDs
vocab.txt         the vocabulary, or spm.model of sentencepiece
lexicon.tsv       the n-grams, with lexicon.tsv.json; only if there are any, and units are predicted
checksums.json    SHA-256 of the files above
"""

from __future__ import annotations

PROGRAM, PARAMETERS = "model.json", "model.pdiparams"
DESCRIPTION, ONNX_DESCRIPTION = "inference.json", "onnx.json"
# The kinds of outputs of a model without a task.
ENCODER, FILL_MASK = "encoder", "fill_mask"
KINDS = (ENCODER, FILL_MASK)
# The name of the output of FILL_MASK.
PROBABILITIES = "probabilities"
# The precisions of matrix products that can be asked for.
PRECISIONS = ("float32", "bfloat16")
