"""What is settled before training starts: corpora that fit, an output folder that is ours, where to go on.

Nothing here needs Paddle, so bad input is told before it loads.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from ernie_gram.config.loading import explained_yaml
from ernie_gram.model.config import require
from ernie_gram.pretraining.config import PretrainConfig, identity_differences
from ernie_gram.run import checkpoint
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import LEXICON, Corpus
from reader.errors import InputError
from reader.lexicon.lexicon_file import info_path
from reader.system.atomic_files import atomic_file
from reader.system.resumable_folder import lock_folder
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.vocabulary_file import FILE_NAMES

CONFIG, HELD_OUT = "config.yaml", "held_out.json"


@dataclass(frozen=True)
class Run:
    """A run that can start.

    Attributes:
        config: its settings.
        output: its folder.
        identity: what its checkpoints must match.
        train: the training data.
        held_out: the evaluation data, if any.
        resume_from: a verified checkpoint, or None to start afresh.
    """

    config: PretrainConfig
    output: Path
    identity: dict[str, Any]
    train: Feeder
    held_out: Feeder | None
    resume_from: Path | None

    def describe(self) -> str:
        """What the run is going to do, in a few lines."""
        config, info = self.config, self.train.corpus.info
        epochs = config.trainer.max_steps * config.data.batch_size / len(self.train)
        start = f"resumes from {self.resume_from}" if self.resume_from else "starts afresh"
        return (
            f"corpus   {config.paths.corpus}: {info.tokens:,} tokens, {info.units:,} units "
            f"({info.num_tokens:,} tokens + {info.num_ngrams:,} n-grams), {len(self.train):,} sequences\n"
            f"training {config.trainer.max_steps:,} steps of {config.data.batch_size:,} sequences, "
            f"{epochs:.2f} epochs\n"
            f"output   {self.output}: {start}"
        )

    def claim_output(self) -> IO[str]:
        """Make the output folder this run's own for as long as the returned file stays open.

        Raises InputError if another process has it: two runs in one folder would remove each other's checkpoints.
        """
        lock = lock_folder(self.output)
        if lock is None:
            raise InputError(f"paths.output: {self.output} is in use by another process that trains")
        with atomic_file(self.output / CONFIG) as partial:
            partial.write_text(explained_yaml(self.config), encoding="utf-8")
        # What its evaluations are of.
        (self.output / HELD_OUT).unlink(missing_ok=True)
        if self.held_out:
            with atomic_file(self.output / HELD_OUT) as partial:
                shutil.copyfile(self.held_out.corpus.path / CORPUS_INFO, partial)
        # What the model's classes are called: with these the run's folder is all that predicting takes.
        corpus = self.train.corpus.path
        for name in (*FILE_NAMES, LEXICON, info_path(Path(LEXICON)).name):
            if (corpus / name).is_file():
                with atomic_file(self.output / name) as partial:
                    shutil.copyfile(corpus / name, partial)
        return lock


def prepare(config: PretrainConfig, world: int) -> Run:
    """Check all that a run needs; raises InputError that names the key or file at fault."""
    require(
        bool(config.paths.corpus), "paths.corpus", "must be given: a folder made by `python -m reader.build corpus`"
    )
    require(bool(config.paths.output), "paths.output", "must be given: a folder for checkpoints and logs")
    require(
        world <= config.data.batch_size,
        "data.batch_size",
        f"{world} processes, but only {config.data.batch_size} sequences in a batch; use fewer processes",
    )
    corpus = Corpus(Path(config.paths.corpus))
    require(
        config.model.vocab_size is None or config.model.vocab_size >= corpus.info.num_tokens,
        "model.vocab_size",
        f"{config.model.vocab_size} is less than the {corpus.info.num_tokens} tokens of {config.paths.corpus}",
    )
    longest = int(corpus.unit_tokens.max())
    require(
        longest <= config.model.max_ngram_tokens or not config.objective.has_queries,
        "model.max_ngram_tokens",
        f"{config.model.max_ngram_tokens} is too few: {config.paths.corpus} has an n-gram of {longest} tokens",
    )
    held_out = Corpus(Path(config.paths.held_out)) if config.paths.held_out else None
    if held_out:
        # A model of tokens can be asked about any lexicon's n-grams, token by token.
        for what in ("vocabulary", "lexicon") if config.objective.is_explicit else ("vocabulary",):
            if getattr(held_out.info, what) != getattr(corpus.info, what):
                raise InputError(f"paths.held_out: {held_out.path} was made with another {what} than {corpus.path}")
    identity = config.identity(corpus.info)
    output = Path(config.paths.output)
    if output.exists() and not output.is_dir():
        raise InputError(f"paths.output: {output} is a file")
    resume_from = _resume_from(output, config.trainer.resume)
    newest_here = checkpoint.newest_valid(output)
    for path in (resume_from, newest_here):
        if path:
            _check_identity(path, identity)
    objective, length, packed = config.objective, config.data.max_seq_len, config.data.pack_documents
    masking = Masking(objective.is_explicit, objective.mask_fraction, config.seed, objective.has_queries)
    return Run(
        config,
        output,
        identity,
        Feeder(corpus, length, masking, packed),
        # Query rows are for training: they change nothing in the context that is evaluated.
        Feeder(held_out, length, replace(masking, queries=False), packed) if held_out else None,
        resume_from,
    )


def _check_identity(path: Path, here: dict[str, Any]) -> None:
    differences = identity_differences(checkpoint.load_state(path).identity, here)
    if differences:
        raise InputError(
            f"{path}: belongs to another run ({'; '.join(differences)}); choose another paths.output, or set these back"
        )


def _resume_from(output: Path, resume: str) -> Path | None:
    found = checkpoint.checkpoints(output)
    if resume == "never":
        if found:
            raise InputError(f"trainer.resume: never, but {output} holds {found[-1].name}; choose another paths.output")
        return None
    if resume != "auto":
        found = [Path(resume)]
    if not found:
        return None
    try:
        checkpoint.verify(found[-1])
    except InputError as error:
        whole = checkpoint.newest_valid(found[-1].parent)
        offer = (
            f"the newest whole one is {whole}: go on from it with --trainer.resume {whole}"
            if whole
            else ("no whole one is left: choose another paths.output to start afresh")
        )
        raise InputError(f"{error}; {offer}") from error
    return found[-1]
