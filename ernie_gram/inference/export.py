"""Build the program of an encoder, and write a program, its parameters and its tokenizer settings as an exported model.

Shape letters: B sequences, L slots, N = B * L, H hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import paddle

from ernie_gram.formats.model import ModelRecord
from ernie_gram.inference.description import (
    DESCRIPTION,
    PARAMETERS,
    PROGRAM,
    ArraySpec,
    Description,
    TextSettings,
)
from ernie_gram.model import parameters as declared
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder, Pooler
from ernie_gram.paddle_private import Place
from ernie_gram.run.checkpoint import write_checksums
from ernie_gram.training.program import Program, open_program
from ernie_gram.training.variables import set_parameters
from reader.batches import fields
from reader.batches.fields import FIELDS
from reader.corpus.memmap import LEXICON
from reader.lexicon.lexicon_file import Lexicon
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.tokenization.vocabulary_file import save_vocabulary

# The fetches and their shapes.
ENCODER_SHAPES = {"hidden": "BLH", "cls": "BH", "mean": "BH", "pooled": "BH"}


def build_encoder(
    config: ModelConfig,
    vocab_size: int,
    names: Collection[str] = tuple(ENCODER_SHAPES),
    precision: str = "float32",
    portable: bool = False,
) -> Program:
    """Build a program that encodes token IDs without dropout; it also reads sentence IDs if the model uses them.

    Args:
        names: of what it fetches, in float32:
            hidden: [B, L, H], the encoder's output in every slot; those of padding have no meaning.
            cls: [B, H], the output in the first slot.
            mean: [B, H], the mean over the slots without padding, those of [CLS] and [SEP] included.
            pooled: [B, H], the pooler's output; left out if the model has no pooler.
        precision, portable: see `open_program`.
    """
    sentences = [fields.SENTENCE_IDS] if config.use_sentence_embedding else []
    with open_program([fields.INPUT_IDS, fields.LENGTHS, *sentences], precision, portable) as opened:
        ids_BL, lengths_B = opened.feeds[fields.INPUT_IDS.name], opened.feeds[fields.LENGTHS.name]
        encoder = Encoder(declared.encoder(config, vocab_size), config)
        encoder.eval()
        sentence_ids_BL, length = opened.feeds.get(fields.SENTENCE_IDS.name), paddle.shape(ids_BL)[1]
        if not {"hidden", "mean"} & set(names):
            first_B = paddle.arange(paddle.shape(ids_BL)[0]) * length
            cls_BH, _ = encoder(ids_BL, lengths_B, sentence_ids_BL, wanted_M=first_B)
            found = {"cls": cls_BH}
        else:
            rows_NH, _ = encoder(ids_BL, lengths_B, sentence_ids_BL)
            hidden_BLH = rows_NH.reshape([-1, length, config.hidden_size])
            cls_BH = hidden_BLH[:, 0]
            found = {"hidden": hidden_BLH, "cls": cls_BH}
        if "mean" in names:
            is_real_BL1 = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).astype("float32").unsqueeze(2)
            found["mean"] = (hidden_BLH * is_real_BL1).sum(1) / lengths_B.astype("float32").unsqueeze(1)
        if config.use_pooler and "pooled" in names:
            found["pooled"] = Pooler(config)(cls_BH)
        return opened.finish({name: found[name] for name in names if name in found})


def export_program(
    folder: Path,
    program: Program,
    model: ModelRecord,
    outputs: str,
    fetches: Mapping[str, str],
    max_tokens: int,
    segmenter: str,
    place: Place,
    task: dict[str, Any] | None = None,
    lexicon: Lexicon | None = None,
    further: Mapping[str, bytes] | None = None,
    network: dict[str, Any] | None = None,
) -> None:
    """Write an exported model (see description.py) atomically.

    Only the operations and parameters that the fetches depend on are written.

    Args:
        program: without dropout; built from batch fields.
        model: has all parameters of the program.
        outputs, task, network: see Description; max_tokens, segmenter: see TextSettings.
        fetches: the shape of each fetch in letters, in the order of `program.fetches`; all are float32.
        lexicon: the n-grams among the classes of the fetches; None if there are none.
        further: content of other files of the folder, by name.

    Raises InputError if the folder exists or cannot be written, or if a parameter is missing or has another shape.
    """
    check_new_folder(folder)
    assert list(fetches) == list(program.fetches)
    vocabulary = model.vocabulary
    text = TextSettings(max_tokens, vocabulary.file_name, vocabulary.lowercase, segmenter)
    feed_specs = tuple(ArraySpec(name, FIELDS[name].shape, FIELDS[name].dtype) for name in program.feeds)
    fetch_specs = tuple(ArraySpec(name, shape, "float32") for name, shape in fetches.items())
    description = Description(outputs, feed_specs, fetch_specs, text, task or {}, network or {}, paddle.__version__)
    # A scope of its own: the parameters of another model in this process keep their values.
    with paddle.static.scope_guard(paddle.static.Scope()):
        set_parameters(program.main, model.parameters, str(model.source), place)
        feeds = _placeholders(program.main)
        with atomic_folder(folder) as partial:
            paddle.static.save_inference_model(
                str(partial / Path(PROGRAM).stem),
                [feeds[name] for name in program.feeds],
                list(program.fetches.values()),
                paddle.static.Executor(place),
                program=program.main,
            )
            assert {path.name for path in partial.iterdir()} == {PROGRAM, PARAMETERS}
            save_vocabulary(vocabulary, partial / vocabulary.file_name)
            if lexicon is not None:
                lexicon.save(partial / LEXICON)
            for name, content in (further or {}).items():
                (partial / name).write_bytes(content)
            (partial / DESCRIPTION).write_text(description.as_json(), encoding="utf-8")
            write_checksums(partial)


def _placeholders(program: paddle.static.Program) -> dict[str, paddle.Tensor]:
    """Return the placeholders of a program by name."""
    operations = (op for op in program.global_block().ops if op.name() == "pd_op.data")
    return {op.attrs()["name"]: op.result(0) for op in operations}
