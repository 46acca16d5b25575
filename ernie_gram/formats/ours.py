"""Our own model folder. It holds everything, prediction heads and lexicon included:

ernie_config.json   the settings: upstream's keys, and ours where upstream has none; in `pretraining`, those of the
                    prediction heads; in `training`, what its card says about its training
model.safetensors   the parameters, float32, under the names of upstream's static model
vocab.txt           the vocabulary (or spm.model), with vocab.txt.json
lexicon.tsv         the n-grams, where there are any, with lexicon.tsv.json
head.safetensors    a head of the user's own, if `Model.save` was given one: float32 arrays that only the user reads
README.md           the model card
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import PREDICTION_SECTIONS, is_explicit, read_own_parameters
from ernie_gram.formats.model import Format, Model, TrainingRecord
from ernie_gram.formats.model_card import FILE_NAME, model_card
from ernie_gram.formats.parameters import LOWERCASE, check_numbers, flag, model_config, settings_of, write_settings
from ernie_gram.formats.untrusted.arrays import write_safetensors
from ernie_gram.formats.untrusted.reading import read_arrays
from ernie_gram.formats.vocabularies import check_vocabulary, read_vocabulary
from reader.corpus.memmap import LEXICON
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon, info_path
from reader.system.untrusted_text import read_json
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import save_vocabulary

NAME = "ernie_gram"
CONFIG, WEIGHTS, HEAD = "ernie_config.json", "model.safetensors", "head.safetensors"
LOOKS_FOR = f"{CONFIG} and {WEIGHTS}"
PRETRAINING, TRAINING = "pretraining", "training"

LOADING = """
This is a model folder of the ERNIE-Gram project. Its commands take it wherever they take a model, and
`ernie-gram convert` writes it in the formats of other projects. `model.safetensors` has float32 arrays;
matrices are [in, out].
"""


def detect(folder: Path) -> bool:
    """Return whether a folder has the files of this format."""
    return (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()


def read(folder: Path) -> Model:
    """Return the model in a folder; raises InputError if a file is damaged, or if the files do not fit together."""
    source = str(folder / CONFIG)
    settings = read_json(folder / CONFIG)
    config = model_config(settings, source)
    if config.vocab_size is None:
        raise InputError(f"{source}: vocab_size: missing, the number of rows of the token embedding")
    pretraining = _pretraining(settings, source)
    training = _training(settings.get(TRAINING), f"{source}: {TRAINING}")
    vocabulary = read_vocabulary(folder, flag(settings, LOWERCASE, True, source))
    check_vocabulary(vocabulary, config.vocab_size, folder)
    lexicon = _lexicon(folder, vocabulary)
    num_ngrams = len(lexicon) if lexicon is not None and pretraining is not None and is_explicit(pretraining) else 0
    stored = read_own_parameters(folder / WEIGHTS, config, pretraining, len(vocabulary) + num_ngrams)
    head = read_arrays(folder / HEAD).arrays if (folder / HEAD).exists() else None
    check_numbers(head or {}, str(folder / HEAD))
    return Model(folder, NAME, config, stored.arrays, vocabulary, lexicon, pretraining, stored.notes, training, head)


def write(model: Model, folder: Path, name: str) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    settings = settings_of(model.config) | {LOWERCASE: model.vocabulary.lowercase}
    if model.pretraining is not None:
        settings[PRETRAINING] = {key: model.pretraining[key] for key in PREDICTION_SECTIONS if key in model.pretraining}
    if model.training is not None:
        settings[TRAINING] = asdict(model.training)
    write_settings(folder / CONFIG, settings)
    write_safetensors(folder / WEIGHTS, model.parameters)
    if model.head:
        write_safetensors(folder / HEAD, model.head)
    save_vocabulary(model.vocabulary, folder / model.vocabulary.file_name)
    if model.lexicon is not None:
        model.lexicon.save(folder / LEXICON)
    numbers = sum(values.size for values in model.parameters.values())
    card = model_card(model, name, NAME, LOADING, numbers, lost=[], different=[])
    (folder / FILE_NAME).write_text(card, encoding="utf-8")


def _pretraining(settings: dict[str, Any], source: str) -> dict[str, Any] | None:
    """Return the settings of the prediction heads, or None; their values are checked where they are used."""
    found = settings.get(PRETRAINING)
    if found is None:
        return None
    if not isinstance(found, dict) or not all(isinstance(section, dict) for section in found.values()):
        raise InputError(f"{source}: {PRETRAINING}: expected sections of settings, or null without prediction heads")
    unknown = [key for key in found if key not in PREDICTION_SECTIONS]
    if unknown:
        raise InputError(f"{source}: {PRETRAINING}: unknown section {unknown[0]!r}; there are {PREDICTION_SECTIONS}")
    return found


def _lexicon(folder: Path, vocabulary: Vocabulary) -> Lexicon | None:
    """Return the lexicon in a folder, or None if it has none; raises InputError if it does not fit the vocabulary."""
    path = folder / LEXICON
    if not path.is_file() and not info_path(path).is_file():
        return None
    return Lexicon.load(path, vocabulary)


def _training(value: object, source: str) -> TrainingRecord | None:
    """Return the record that `dataclasses.asdict` made, None for null; raises InputError, which names `source`."""
    if value is None:
        return None
    default = TrainingRecord()
    types = {each.name: type(getattr(default, each.name)) for each in fields(TrainingRecord)}
    if (
        not isinstance(value, dict)
        or not all(isinstance(part, types.get(key, ())) for key, part in value.items())
        or not all(type(score) in (int, float) for score in value.get("scores", {}).values())
    ):
        raise InputError(f"{source}: expected {', '.join(types)}, as `ernie-gram convert` writes them")
    return TrainingRecord(**value)


FORMAT = Format(NAME, LOOKS_FOR, detect, read, lambda model: [], write)
