"""Train every rung of the ablation for a few steps on a fixed text, and print the results as JSON.

    python -m tests.golden.train_rungs FOLDER

Text, vocabulary, seeds and the number of threads (one) are fixed, so the same code on the same kind of machine gives
the same bits. Refactoring must not change any of them. `--record` writes the results to golden.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from tests.support.objectives import RUNGS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden.json")
# Set before the libraries are loaded, which read it: sums over several threads depend on the number of threads.
os.environ["OMP_NUM_THREADS"] = "1"

LETTERS = "abcdefghijklmnopqrstuvwxyz"
NOUNS = ["river", "stone", "bridge", "market", "garden", "winter", "letter", "window", "harbour", "forest", "captain"]
VERBS = ["sees", "finds", "takes", "leaves", "builds", "opens", "crosses", "follows"]
OTHERS = ["the", "old", "new", "small", "a", "of", "to", "in", "and", "with"]
PHRASES = ["the old bridge", "in the market", "takes a letter", "of the harbour", "new york city", "with the captain"]

SETTINGS = [
    *("--model.hidden_size=24", "--model.num_hidden_layers=2", "--model.num_attention_heads=6"),
    *("--model.out_emb_size=16", "--model.max_position_embeddings=24", "--model.initializer_range=0.05"),
    *("--model.hidden_dropout_prob=0.1", "--model.attention_probs_dropout_prob=0.1"),
    *("--data.max_seq_len=24", "--data.batch_size=6", "--optimizer.learning_rate=3e-3", "--optimizer.warmup_steps=3"),
    *("--trainer.max_steps=12", "--trainer.log_every=1", "--trainer.eval_every=6", "--trainer.eval_sequences=20"),
    # One of the generator's samples instead of the mean over eight, which the results were recorded without.
    *("--trainer.eval_draws=1", "--trainer.save_every=12", "--trainer.visualdl=false"),
    "--trainer.peak_tflops=1",
]
# Name -> rung, and more options.
CASES: dict[str, tuple[str, list[str]]] = {
    **{rung: (rung, []) for rung in RUNGS},
    # Another code path: heads tied to embeddings narrower than the hidden size.
    "both, tied": ("both", ["--model.out_emb_size=0", "--model.emb_size=16", "--model.use_sentence_embedding=true"]),
}


def text(lines: int, seed: int) -> str:
    """Return lines of words and phrases from a linear congruential generator, so that every machine gets the same."""
    state = seed
    words: list[str] = []

    def below(limit: int) -> int:
        """Return a random number in [0, limit)."""
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (state >> 33) % limit

    for line in range(lines):
        for _ in range(6 + below(10)):
            pool = (PHRASES, NOUNS, VERBS, OTHERS)[below(4)]
            words.append(pool[below(len(pool))])
        words.append(".\n" + ("\n" if line % 5 == 4 else ""))
    return " ".join(words).replace("\n ", "\n")


def vocabulary() -> str:
    """Return a vocab.txt that holds some words as one token; the other words are split into letters."""
    whole = [*NOUNS[:6], *VERBS[:4], *OTHERS]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return "".join(f"{token}\n" for token in dict.fromkeys([*tokens, *whole]))


def machine() -> str:
    """Return what rounding depends on: the processor model and the version of Paddle."""
    from importlib.metadata import version

    lines = Path("/proc/cpuinfo").read_text().splitlines() if platform.system() == "Linux" else []
    cpu = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in reversed(lines))}
    kind = " ".join(cpu.get(key, "?") for key in ("vendor_id", "cpu family", "model"))
    return f"{kind}, paddle {version('paddlepaddle')}"


def digest(paths: list[Path]) -> str:
    """Return one digest of the contents of several files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:32]


def corpora(folder: Path) -> dict[str, str]:
    """Build text, lexicon and corpora in a folder; return their digests, which are the same on every machine."""
    # Imported here: importing reader or ernie_gram must not precede the setting above.
    from tests.support.commands import build

    (folder / "vocab.txt").write_text(vocabulary())
    for name, lines, seed in (("train", 400, 1), ("held_out", 60, 2)):
        (folder / f"{name}.txt").write_text(text(lines, seed))
    shared = ["--vocab", str(folder / "vocab.txt"), "--processes", "1"]
    lexicon = ["--lexicon", str(folder / "lexicon.tsv")]
    train, held_out = (["--input", str(folder / f"{name}.txt"), *shared] for name in ("train", "held_out"))
    build("lexicon", *train, "--top", "2:30,3:15", "--output", lexicon[1])
    build("corpus", *train, *lexicon, "--output", str(folder / "corpus"))
    build("corpus", *train, "--output", str(folder / "token_corpus"))
    build("corpus", *held_out, *lexicon, "--output", str(folder / "held_out"))
    made = {name: digest([folder / name / "units.bin"]) for name in ("corpus", "token_corpus", "held_out")}
    return {"lexicon": digest([folder / "lexicon.tsv"]), **made}


def train(folder: Path, output: Path, rung: str, more: list[str]) -> dict[str, Any]:
    """Train one rung on the corpora in `folder`; return its losses, its evaluations, and a digest of its parameters."""
    from safetensors.numpy import load_file

    from ernie_gram.run.run_log import LOSS_STEPS, METERS
    from tests.support.runs import pretrain_with

    corpus = "token_corpus" if rung == "token" else "corpus"
    paths = [f"--paths.{key}={folder / value}" for key, value in (("corpus", corpus), ("held_out", "held_out"))]
    config = ["--config", str(ROOT / f"conf/ablation/{rung}.yaml")]
    pretrain_with(*config, *SETTINGS, *paths, f"--paths.output={output}", *more).ok()
    records = [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]
    for record in records:
        for meter in (LOSS_STEPS, *METERS):
            record.pop(meter, None)
    model = load_file(output / "step_12" / "model.safetensors")
    parameters = hashlib.sha256(b"".join(key.encode() + model[key].tobytes() for key in sorted(model)))
    return {"records": records, "parameters": parameters.hexdigest()[:32]}


def as_lines(golden: dict[str, Any]) -> str:
    """Return the golden results as JSON, one line per run."""
    machines = (
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(run)}: {json.dumps(runs[run])}" for run in runs)
        + "\n }"
        for name, runs in golden["runs"].items()
    )
    return f'{{"corpora": {json.dumps(golden["corpora"])},\n"runs": {{\n' + ",\n".join(machines) + "\n}}\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.train_rungs", description=__doc__)
    parser.add_argument("folder", type=Path, help="an existing empty folder for the runs")
    parser.add_argument("--record", action="store_true", help="write the results to golden.json")
    arguments = parser.parse_args()
    folder, record = arguments.folder.resolve(), arguments.record
    found: dict[str, Any] = {"corpora": corpora(folder), "runs": {}}
    for name, (rung, more) in CASES.items():
        found["runs"][name] = train(folder, folder / name.replace(", ", "_"), rung, more)
    if record:
        golden = json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else {}
        golden["corpora"] = found["corpora"]
        golden.setdefault("runs", {})[machine()] = found["runs"]
        GOLDEN.write_text(as_lines(golden))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
