"""Write a program, its parameters and its tokenizer settings as an exported model, whose files description.py lists.

It has no compiled operations: `paddle.inference` ends a process in which a program has some (Paddle 3.3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import paddle

from ernie_gram.distributed.world import World
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import write_settings
from ernie_gram.inference.description import (
    DESCRIPTION,
    FILL_MASK,
    PARAMETERS,
    PROBABILITIES,
    PROGRAM,
)
from ernie_gram.inference.forward import ENCODER_SHAPES, build_outputs
from ernie_gram.paddle_private import Place
from ernie_gram.pretraining.config import max_tokens
from ernie_gram.run.checkpoint import write_checksums
from ernie_gram.training.program import Program
from ernie_gram.training.variables import set_parameters
from reader.batches.fields import FIELDS
from reader.corpus.memmap import LEXICON
from reader.lexicon.lexicon_file import segmenter_of
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.tokenization.vocabulary_file import save_vocabulary


def export_model(model: ModelRecord, outputs: str, folder: Path, world: World) -> None:
    """Write a model as an exported model.

    Args:
        outputs: "encoder", for the vectors of `build_encoder`; or "fill_mask", for the probabilities of
            all units in the masked slots, as `fill_mask` computes them. With a generator, the program draws its samples
            itself.

    Raises InputError if the folder exists or cannot be written, or if the model lacks what these outputs need.
    """
    shapes = {PROBABILITIES: "MC"} if outputs == FILL_MASK else ENCODER_SHAPES
    program = build_outputs(model, tuple(shapes), portable=True)
    fetches = {name: shapes[name] for name in program.fetches}
    text = max_tokens(model), segmenter_of(model.lexicon)
    export_program(folder, program, model, outputs, fetches, *text, world.place)


def export_program(
    folder: Path,
    program: Program,
    model: ModelRecord,
    outputs: str,
    fetches: Mapping[str, str],
    max_tokens: int,
    segmenter: str,
    place: Place,
    further: Mapping[str, bytes] | None = None,
) -> None:
    """Write an exported model (see description.py) atomically.

    Only the operations and parameters that the fetches depend on are written.

    Args:
        program: without dropout; built from batch fields.
        model: has all parameters of the program.
        outputs: the kind of what the program computes, for example "encoder".
        fetches: the shape of each fetch in letters, in the order of `program.fetches`; all are float32.
        max_tokens: maximum number of tokens of a sequence, [CLS] and [SEP] included.
        segmenter: how Han characters are split into words (see basic_tokenizer.py).
        further: content of other files of the folder, by name.

    Raises InputError if the folder exists or cannot be written, or if a parameter is missing or has another shape.
    """
    check_new_folder(folder)
    assert list(fetches) == list(program.fetches)
    feeds = _placeholders(program)
    vocabulary = model.vocabulary
    description = {
        "outputs": outputs,
        # One letter per dimension; the sizes B (sequences) and L (slots) may differ between calls.
        "feeds": [{"name": each, "shape": FIELDS[each].shape, "dtype": FIELDS[each].dtype} for each in feeds],
        "fetches": [{"name": name, "shape": shape, "dtype": "float32"} for name, shape in fetches.items()],
        "text": {
            "max_tokens": max_tokens,
            "vocabulary": vocabulary.file_name,
            "lowercase": vocabulary.lowercase,
            "segmenter": segmenter,
        },
        "paddle": paddle.__version__,
    }
    # A scope of its own: the parameters of another model in this process keep their values.
    with paddle.static.scope_guard(paddle.static.Scope()):
        set_parameters(program.main, model.parameters, str(model.source), place)
        with atomic_folder(folder) as partial:
            paddle.static.save_inference_model(
                str(partial / Path(PROGRAM).stem),
                list(feeds.values()),
                list(program.fetches.values()),
                paddle.static.Executor(place),
                program=program.main,
            )
            assert {path.name for path in partial.iterdir()} == {PROGRAM, PARAMETERS}
            save_vocabulary(vocabulary, partial / vocabulary.file_name)
            if outputs == FILL_MASK and model.lexicon is not None:
                model.lexicon.save(partial / LEXICON)
            for name, content in (further or {}).items():
                (partial / name).write_bytes(content)
            write_settings(partial / DESCRIPTION, description)
            write_checksums(partial)


def _placeholders(program: Program) -> dict[str, paddle.Tensor]:
    """Return the placeholders of a program by name; Paddle refuses those that no fetch depends on."""
    operations = (op for op in program.main.global_block().ops if op.name() == "pd_op.data")
    found = {op.attrs()["name"]: op.result(0) for op in operations}
    return {name: found[name] for name in program.feeds if not found[name].use_empty()}
