"""The list of all formats of model folders; read a folder of any of them, and write one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ernie_gram.config import require
from ernie_gram.formats import bert, ours, paddlenlp, upstream
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.paddlenlp import PDPARAMS
from ernie_gram.inference.description import DESCRIPTION, ONNX_DESCRIPTION
from ernie_gram.run.checkpoint import checkpoints
from reader.errors import InputError
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.system.untrusted_text import read_json

FORMATS = (ours.RUN, ours.FORMAT, upstream.STATIC, upstream.DYGRAPH, bert.FORMAT, paddlenlp.FORMAT)
WRITTEN = tuple(each for each in FORMATS if each.write is not None)
WRITTEN_NAMES = tuple(each.name for each in WRITTEN)
ONLY_WRITTEN = {DESCRIPTION: "an exported program", ONNX_DESCRIPTION: "a model in ONNX"}


def read_model(path: Path) -> ModelRecord:
    """Return the model in a folder of any format, which is recognised by its files.

    Raises InputError if there is no such folder, if the folder has no format or several, or if its files are damaged or
    do not fit together.
    """
    if not path.exists() and (steps := checkpoints(path.parent)):
        raise InputError(f"{path}: no such folder; there are {', '.join(each.name for each in steps)}")
    if not path.is_dir():
        advice = "give the folder of a model; `hf download NAME --local-dir FOLDER` makes one of a model on a hub"
        raise InputError(f"{path}: {'is a file' if path.exists() else 'no such folder'}; {advice}")
    if kind := next((kind for name, kind in ONLY_WRITTEN.items() if (path / name).is_file()), None):
        raise InputError(f"{path}: is {kind}; give the model that it was made from")
    index = next(path.glob("*.index.json"), None)
    if index is not None and not any((path / name).is_file() for name in (*bert.WEIGHTS, PDPARAMS)):
        raise InputError(
            f"{index}: the weights are in several files, which are not read; write them as one file, in the software "
            'that wrote them: model.save_pretrained(FOLDER, max_shard_size="100GB")'
        )
    found = [each for each in FORMATS if each.detect(path)]
    if not found:
        old = path / "bert_config.json"
        advice = f'a BERT of Google\'s form; copy it to {bert.CONFIG}, and add "model_type": "bert"'
        require(not old.is_file() or (path / bert.CONFIG).is_file(), str(old), advice)
        settings = read_json(path / bert.CONFIG) if (path / bert.CONFIG).is_file() else {}
        type_ = f" ({bert.CONFIG}: model_type is {settings.get('model_type')!r})" if settings else ""
        raise InputError(
            f"{path}: not a checkpoint, and not a run's folder with a valid checkpoint or another model folder{type_}; "
            f"a format is recognised by {'; '.join(each.looks_for for each in FORMATS)}"
        )
    if len(found) > 1:
        raise InputError(
            f"{path}: has files of several formats: "
            f"{'; '.join(f'{each.name} ({each.looks_for})' for each in found)}; keep the files of one"
        )
    return found[0].read(path)


def write_model(
    model: ModelRecord, folder: Path, format_name: str, accept_loss: bool = False, **options: Any
) -> list[str]:
    """Write a model as a new folder, completely or not at all.

    Args:
        format_name: one of WRITTEN_NAMES.
        accept_loss: whether to write a model of which the format cannot hold everything.
        options: of the format's function that writes.
    Returns:
        What was lost, one line each.

    Raises InputError if `folder` exists, or if the format cannot hold the model.
    """
    chosen = next((each for each in WRITTEN if each.name == format_name), None)
    if chosen is None:
        raise InputError(f"format {format_name}: not one of {', '.join(WRITTEN_NAMES)}")
    check_new_folder(folder)
    assert chosen.write is not None
    losses = chosen.losses(model)
    if losses and not accept_loss:
        reasons = "; nor ".join(losses)
        advice = "--accept_loss writes the model all the same"
        raise InputError(f"{model.source}: {format_name} cannot hold {reasons}; {advice}")
    with atomic_folder(folder) as partial:
        chosen.write(model, partial, folder.name, **options)
    return losses
