"""Small pre-training runs whose losses and parameters are compared, and the corpus that they read."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import paddle

from ernie_gram.config.loading import load_config
from ernie_gram.gpu_checks.check import Setup
from ernie_gram.pretrain import train
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import prepare
from ernie_gram.pretraining.rungs import CONFIGS
from ernie_gram.run import checkpoint
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.run.run_log import Record, read_log
from reader.build import build_parser
from reader.demo_text import documents, joined

DOCUMENTS = 60
STEPS = 10
# In the names of AdamW's running means of gradients.
MEAN = "_moment1_"
# An objective without random samples, because each device draws different ones.
WITHOUT_DRAWING = "cnp"


def corpus(setup: Setup) -> Path:
    """Return the folder of a corpus of a few English texts, which is built if it is not there."""
    folder = setup.folder / "corpus"
    text, vocabulary, lexicon = (setup.folder / name for name in ("text.txt", "vocab.txt", "lexicon.tsv"))
    if folder.is_dir():
        return folder
    text.write_text(joined(islice(documents(), DOCUMENTS)), encoding="utf-8")
    given = ["--input", str(text)]
    _build("vocab", *given, "--size", "1000", "--output", str(vocabulary))
    given += ["--vocab", str(vocabulary)]
    _build("lexicon", *given, "--top", "2:400,3:200", "--output", str(lexicon))
    _build("corpus", *given, "--lexicon", str(lexicon), "--output", str(folder))
    return folder


def _build(*arguments: str) -> None:
    parsed = build_parser().parse_args(arguments)
    parsed.run(parsed)


def options(setup: Setup, name: str, steps: int, *more: str, rung: str = WITHOUT_DRAWING) -> list[str]:
    """Return the options of `ernie-gram pretrain` for a run in the folder `name`, of a rung of the ablation.

    There is no dropout, because each device draws different masks. `more` may override any option.
    """
    layers, width, length, batch = (1, 32, 32, 8) if setup.quick else (2, 256, 128, 32)
    return [
        f"--config={CONFIGS / f'{rung}.yaml'}",
        f"--paths.corpus={corpus(setup)}",
        "--paths.held_out=null",
        f"--paths.output={setup.folder / name}",
        f"--model.num_hidden_layers={layers}",
        f"--model.hidden_size={width}",
        "--model.num_attention_heads=4",
        f"--model.max_position_embeddings={length}",
        f"--data.max_seq_len={length}",
        f"--data.batch_size={batch}",
        "--model.use_relative_position=true",
        "--model.hidden_dropout_prob=0",
        "--model.attention_probs_dropout_prob=0",
        "--optimizer.learning_rate=1e-3",
        "--optimizer.warmup_steps=2",
        # The learning rate must not depend on where a run stops.
        "--optimizer.decay_steps=1000",
        f"--trainer.max_steps={steps}",
        "--trainer.log_every=1",
        f"--trainer.save_every={steps}",
        "--trainer.peak_tflops=1",
        *more,
    ]


def started(setup: Setup, rung: str = WITHOUT_DRAWING) -> str:
    """Return the option with which all runs of a rung start from the same parameters: each device would draw others."""
    return f"--paths.start={_train(options(setup, f'start_{rung}', 1, '--trainer.device=cpu', rung=rung))}"


def trained(setup: Setup, name: str, device: str, *more: str, steps: int = STEPS, rung: str = WITHOUT_DRAWING) -> Path:
    """Return the folder `name` of a run on a device, "cpu" or "gpu", from the parameters of `started`."""
    more = (f"--trainer.device={device}", started(setup, rung), *more)
    return _train(options(setup, name, steps, *more, rung=rung))


def _train(arguments: list[str]) -> Path:
    """Train or resume a run, unless it is done; return its folder. Raises InputError as `ernie-gram pretrain` does."""
    config, given = load_config(PretrainConfig, arguments)
    run = prepare(config, 1, 0, given)
    if run.resume_from is None or checkpoint.step_of(run.resume_from) != config.trainer.max_steps:
        with run.claim_output(), paddle.static.scope_guard(paddle.static.Scope()):
            train(run)
    return run.output


def steps_of(output: Path) -> list[Record]:
    """Return the logged records of all steps of a run."""
    return [record for record in read_log(output) if record["kind"] == "train"]


def parameters(output: Path) -> Arrays:
    """Return the parameters of the last checkpoint of a run by name."""
    return checkpoint.load_model(checkpoint.checkpoints(output)[-1])


def mean_gradients(output: Path) -> Arrays:
    """Return AdamW's running means of the gradients by parameter, in the last checkpoint of a run.

    Its updates do not depend on the scale of a gradient, so the parameters do not show a gradient with a wrong scale.
    """
    moments = checkpoint.load_optimizer(checkpoint.checkpoints(output)[-1])
    return {name.partition(MEAN)[0]: array for name, array in moments.items() if MEAN in name}


def largest_difference(found: list[Record], expected: list[Record], key: str) -> float:
    """Return the largest relative difference of a logged value over the steps of two runs.

    It is infinity if the runs have different steps, or if a value is missing.
    """
    if [record["step"] for record in found] != [record["step"] for record in expected]:
        return float("inf")
    pairs = [(one.get(key, np.inf), two.get(key, np.nan)) for one, two in zip(found, expected, strict=True)]
    return max((not_nan(abs(one - two) / max(abs(two), 1e-12)) for one, two in pairs), default=float("inf"))


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the norm of the difference of two arrays, divided by the norm of the expected one."""
    return not_nan(float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-12)))


def not_nan(number: float) -> float:
    """Return a number, or infinity for NaN, so that NaN is larger than every limit."""
    return float("inf") if np.isnan(number) else number
