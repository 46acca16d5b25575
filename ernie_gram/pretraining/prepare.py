"""Check a pre-training run before it starts: corpora that fit together, an output folder, a checkpoint to resume from.

Nothing here imports Paddle, so that errors are reported before it loads.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from ernie_gram.config import require
from ernie_gram.config.loading import explained_yaml, flatten
from ernie_gram.formats.model import ModelRecord, digest_of
from ernie_gram.formats.registry import read_model
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.warm_start import check_vocabulary, fit_to_start
from ernie_gram.run.run_folder import CONFIG, HELD_OUT, Identity, lock_run, resume_checkpoint
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import KEPT, Corpus, CorpusInfo
from reader.errors import counted, located
from reader.system.atomic_files import write_atomically
from reader.text.input_files import CORPUS_INFO


@dataclass(frozen=True)
class Run:
    """A checked run.

    Attributes:
        config: its settings; those of the model that were not given are the start model's.
        output: its folder.
        identity: everything that can change its result; checkpoints to resume from must match it.
        train: the training data.
        held_out: the evaluation data, or None.
        found: the checkpoints in its folder before one was chosen.
        resume_from: a checkpoint that rank 0 has verified, or None to start from step 0.
        start: the given model of a warm start, or None; also None if the run resumes.
    """

    config: PretrainConfig
    output: Path
    identity: Identity
    train: Feeder
    held_out: Feeder | None
    found: list[Path]
    resume_from: Path | None
    start: ModelRecord | None = None

    @property
    def corpora(self) -> list[Corpus]:
        """The training corpus, and the held-out corpus if there is one."""
        return [feeder.corpus for feeder in (self.train, self.held_out) if feeder]

    def describe(self) -> str:
        """Return a summary of the run: three lines, more at a warm start."""
        config, info = self.config, self.train.corpus.info
        epochs = config.trainer.max_steps * config.data.batch_size / len(self.train)
        start = f"resumes from {self.resume_from}" if self.resume_from else "starts from step 0"
        warm = ""
        if self.start:
            model, digest = self.start, self.identity["paths.start"]
            warm = (
                f"\nstart    {model.source} ({model.format}): {len(model.parameters)} parameters, SHA-256 {digest[:12]}"
            )
            warm += "".join(f"\nnote     {model.source}: {line}" for line in model.notes)
        return (
            f"corpus   {config.paths.corpus}: {info.tokens:,} tokens, {info.units:,} units "
            f"({info.num_tokens:,} tokens + {counted(info.num_ngrams, 'n-gram')}), "
            f"{counted(len(self.train), 'sequence')}\n"
            f"training {counted(config.trainer.max_steps, 'step')} of {counted(config.data.batch_size, 'sequence')}, "
            f"{epochs:.2f} epochs\n"
            f"output   {self.output}: {start}{warm}"
        )

    def warnings(self) -> list[str]:
        """Return a line for a held-out corpus that is valid but unlikely to be meant."""
        corpus, held_out = self.train.corpus, self.held_out.corpus if self.held_out else None
        if held_out is None or held_out.info.text != corpus.info.text:
            return []
        return [
            f"paths.held_out: {held_out.path} has the text of {corpus.path}, so evaluation does not show whether the "
            "model has learned more than this text by heart; build it from other text"
        ]

    def claim_output(self) -> IO[bytes]:
        """Lock the output folder, and write the settings, the vocabulary and the lexicon into it.

        Returns the lock, see `lock_run`.
        """
        lock = lock_run(self.output, self.found)
        write_atomically(self.output / CONFIG, explained_yaml(self.config))
        # Records which text the evaluations in the log belong to.
        if not self.resume_from:
            (self.output / HELD_OUT).unlink(missing_ok=True)
        if self.held_out:
            write_atomically(self.output / HELD_OUT, (self.held_out.corpus.path / CORPUS_INFO).read_bytes())
        # The names of the model's classes: with these files, the run's folder is enough to predict.
        corpus = self.train.corpus.path
        for name in KEPT:
            if (corpus / name).is_file():
                write_atomically(self.output / name, (corpus / name).read_bytes())
        return lock


def prepare(config: PretrainConfig, world_size: int, is_first: bool = True, given: Container[str] = ()) -> Run:
    """Check everything that a process of a run on `world_size` processes needs.

    Args:
        is_first: whether this is rank 0, which alone reads large files of a checkpoint, and writes.
        given: the dotted keys that the user has set: at a warm start, the other keys of `model` are taken from the
            given model (see fit_to_start).

    Raises InputError that names the key or file at fault.
    """
    paths = config.paths
    require(bool(paths.corpus), "paths.corpus", "must be given: a folder made by `ernie-gram corpus`")
    require(bool(paths.output), "paths.output", "must be given: a folder for checkpoints and logs")
    config.check_processes(world_size)
    require(not config.model.use_pooler, "model.use_pooler", "must be false: no loss of pre-training trains the pooler")
    corpus = Corpus(Path(paths.corpus))
    start = digest = None
    if paths.start is not None:
        start = read_model(Path(paths.start))
        check_vocabulary(start, corpus)
        config, digest = fit_to_start(config, given, start), digest_of(start.parameters)
    _check_sizes(config, corpus)
    train, held_out = feeders(config, corpus)
    identity = config.identity(corpus.info, digest)
    output = Path(paths.output)
    defaults = flatten(asdict(PretrainConfig()))
    found, resume_from = resume_checkpoint(output, identity, is_first, defaults)
    if resume_from and held_out and (recorded := output / HELD_OUT).is_file():
        is_same = CorpusInfo.read(recorded).fingerprint == held_out.corpus.info.fingerprint
        require(is_same, "paths.held_out", f"{output} was evaluated on another corpus; choose another paths.output")
    return Run(config, output, identity, train, held_out, found, resume_from, None if resume_from else start)


def evaluation_settings(config: PretrainConfig) -> dict[str, int]:
    """Return the settings on which the values of an evaluation depend."""
    found = {"trainer.eval_sequences": config.trainer.eval_sequences}
    return found | ({"trainer.eval_draws": config.trainer.eval_draws} if config.objective.has_generator else {})


def feeders(config: PretrainConfig, corpus: Corpus) -> tuple[Feeder, Feeder | None]:
    """Return the feeder of the training batches, and that of the evaluation batches if there is a held-out corpus.

    Raises InputError if the held-out corpus does not fit the training corpus.
    """
    data, objective, held_out = config.data, config.objective, None
    masking = Masking(objective.is_explicit, objective.mask_fraction, config.seed, objective.has_queries)
    if config.paths.held_out:
        with located("paths.held_out"):
            other = Corpus(Path(config.paths.held_out))
        # Under contiguous masking the model predicts tokens, and can be evaluated on the n-grams of any lexicon.
        for what in ("vocabulary", "lexicon") if objective.is_explicit else ("vocabulary",):
            reason = f"{other.path} was made with another {what} than {corpus.path}; build both with the same one"
            require(getattr(other.info, what) == getattr(corpus.info, what), "paths.held_out", reason)
        # Query rows are for training only: they do not change the context, which is what evaluation reads.
        held_out = Feeder(other, data.max_seq_len, replace(masking, queries=False), data.pack_documents)
    return Feeder(corpus, data.max_seq_len, masking, data.pack_documents), held_out


def _check_sizes(config: PretrainConfig, corpus: Corpus) -> None:
    """Raise InputError if the model is too small for the corpus."""
    model, path = config.model, config.paths.corpus
    require(
        model.vocab_size is None or model.vocab_size >= corpus.info.num_tokens,
        "model.vocab_size",
        f"{model.vocab_size} is less than the {corpus.info.num_tokens} tokens of {path}; give --model.vocab_size null",
    )
    longest = int(corpus.unit_tokens.max())
    require(
        longest <= model.max_ngram_tokens or not config.objective.has_queries,
        "model.max_ngram_tokens",
        f"{model.max_ngram_tokens} is too few: {path} has an n-gram of {longest} tokens; give --model.max_ngram_tokens "
        f"{longest}, or, for a given model with {model.max_ngram_tokens} query rows, make the lexicon with "
        f"--max_ngram_tokens {model.max_ngram_tokens}",
    )
