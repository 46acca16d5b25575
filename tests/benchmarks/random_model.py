"""Write a model that was not pre-trained, as a baseline: `python -m tests.benchmarks.random_model --like MODEL FOLDER`.

It has the sizes and the vocabulary of the other model.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from ernie_gram.formats.heads import encoder_parameters
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.model.config import ModelConfig
from reader.errors import one_line_errors
from reader.tokenization.vocabulary import Vocabulary


def write_random_model(vocabulary: Vocabulary, folder: Path, config: ModelConfig, seed: int = 1) -> None:
    """Write a model with drawn matrices, LayerNorms that change nothing, and biases of 0."""
    random = np.random.default_rng(seed)
    config = replace(config, vocab_size=config.vocab_size or len(vocabulary))
    parameters = {}
    for name, shape in encoder_shapes(config).items():
        if len(shape) == 1:
            parameters[name] = np.full(shape, float(name.endswith("_scale")), np.float32)
        else:
            parameters[name] = (random.standard_normal(shape) * config.initializer_range).astype(np.float32)
    write_model(ModelRecord(folder, "drawn", config, parameters, vocabulary), folder, "ernie_gram")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--like", type=Path, required=True, metavar="MODEL", help="a model folder")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    model = read_model(arguments.like)
    rows = len(encoder_parameters(model)["word_embedding"])
    config = replace(model.config, vocab_size=rows)
    write_random_model(model.vocabulary, arguments.folder, config, arguments.seed)


if __name__ == "__main__":
    one_line_errors(main)
