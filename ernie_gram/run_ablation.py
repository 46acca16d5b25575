"""The ablation: train the rungs of conf/ablation alike, evaluate them alike, and set them side by side.

    python -m ernie_gram.run_ablation --output output/ablation --rungs contiguous explicit full --jobs 2

Options that are not its own go to every rung, e.g. --trainer.max_steps 2000. Stopped and started again, it goes on.
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from ernie_gram.config import PretrainConfig
from ernie_gram.config_file import load_config
from ernie_gram.model_config import require
from ernie_gram.plot import curve, new_figure, save_figure
from ernie_gram.run import CONFIG, HELD_OUT, prepare
from ernie_gram.runlog import last_evaluation, read_log
from reader.atomic import whole_file
from reader.corpus import Corpus
from reader.errors import InputError, OneLineParser, one_line_errors
from reader.text import CORPUS_INFO

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "conf" / "ablation"
# From the baselines up to the whole; the numbers are those of the paper's table, which lacks the first two.
RUNGS = {
    "token": "token-level masking",
    "contiguous": "contiguous n-gram masking",
    "explicit": "#5 explicit n-gram masking",
    "cnp": "#4 #5 + comprehensive prediction",
    "enrm": "#3 #5 + relation modelling",
    "both": "#2 #5 + both",
    "full": "#1 #2 + relative position",
}
POLL_SECONDS = 1.0
CONSOLE = "console.txt"
Row = dict[str, float | int | str]
COLUMNS = ("rung", "seed", "steps", "ngram_perplexity", "perplexity", "accuracy", "seconds_per_step")


@dataclass(frozen=True, eq=False)
class Job:
    """One rung with one seed: its command's options, its resolved settings, its folder."""

    rung: str
    seed: int
    options: list[str]
    config: PretrainConfig

    @property
    def output(self) -> Path:
        return Path(self.config.paths.output)

    @property
    def name(self) -> str:
        return self.output.name

    @property
    def progress(self) -> float:
        """The share of its steps that is in its log."""
        return max((record["step"] for record in read_log(self.output)), default=0) / self.config.trainer.max_steps

    @property
    def done(self) -> bool:
        """Whether its last evaluation is in its log."""
        last = last_evaluation(self.output)
        return last is not None and last["step"] == self.config.trainer.max_steps


def parts_of(config: PretrainConfig) -> dict[str, object]:
    """What the rungs of the ladder differ in, by the names of the settings."""
    objective = config.objective
    weighed = ("coarse_weight", "fine_weight", "generator_weight", "rtd_weight")
    return {
        "objective.masking": objective.masking,
        **{f"objective.{key}": getattr(objective, key) > 0 for key in weighed},
        "model.use_relative_position": config.model.use_relative_position,
    }


def shared_settings(config: PretrainConfig) -> dict[str, object]:
    """What they must not differ in."""
    objective = config.objective
    weights = {key: value for key, value in vars(objective).items() if key.endswith("_weight") and value}
    return {
        "model": replace(config.model, use_relative_position=False),
        "data": config.data,
        "objective": (objective.mask_fraction, objective.output_bias),
        "generator": config.generator,
        "optimizer": config.optimizer,
        "trainer": config.trainer,
    } | {f"objective.{key}": value for key, value in weights.items()}


def plan(output: Path, rungs: list[str], seeds: list[int], token_corpus: str | None, overrides: list[str]) -> list[Job]:
    """The jobs of a ladder.

    Raises InputError for an unknown option, for one that would make a rung another, and for rungs that are not alike
    in all else.
    """
    for own in ("--config", "--print_config", "--seed", "--paths.output"):
        if any(option.partition("=")[0] == own for option in overrides):
            raise InputError(f"{own}: not for the ablation, which sets it for every run")
    jobs = []
    for seed in dict.fromkeys(seeds):
        for rung in dict.fromkeys(rungs):
            options = ["--config", str(CONFIGS / f"{rung}.yaml"), *overrides, f"--seed={seed}"]
            options.append(f"--paths.output={output / f'{rung}_{seed}'}")
            if rung == "token" and token_corpus:
                options.append(f"--paths.corpus={token_corpus}")
            config, as_written = (load_config(given, "run_ablation", "", {})[0] for given in (options, options[:2]))
            for key, value in parts_of(as_written).items():
                require(parts_of(config)[key] == value, key, f"makes {rung} another rung; not for the ablation")
            jobs.append(Job(rung, seed, options, config))
    shared: dict[str, object] = {}
    for job in jobs:
        for what, value in shared_settings(job.config).items():
            if shared.setdefault(what, value) != value:
                raise InputError(f"{CONFIGS / job.rung}.yaml: its {what} differs from that of the other rungs")
    return jobs


def check(jobs: list[Job], processes: int) -> None:
    """Raise InputError if any of the jobs cannot be trained, or could not be compared with the others.

    All of them before the first is trained: a mistake in the last should not wait for the others.
    """
    texts = {}
    for job in jobs:
        paths, trainer = job.config.paths, job.config.trainer
        require(bool(paths.held_out), "paths.held_out", "must be given: rungs are compared on it")
        run = prepare(job.config, processes)
        trained_on, held_out = run.train.corpus.info, Corpus(Path(str(paths.held_out))).info
        require(held_out.num_ngrams > 0, "paths.held_out", f"{paths.held_out} has no n-grams to compare rungs on")
        if job.rung == "token":
            hint = "give one made without a lexicon by --token_corpus"
            require(trained_on.num_ngrams == 0, "--token_corpus", f"{paths.corpus} has n-grams; {hint}")
        else:
            require(trained_on.num_ngrams > 0, "paths.corpus", f"{paths.corpus} has no n-grams")
        texts[trained_on.text] = paths.corpus
        require(len(texts) == 1, "--token_corpus", f"{' and '.join(texts.values())} were made of different texts")
        before = job.output / CONFIG
        if before.is_file():
            old = load_config(["--config", str(before)], "run_ablation", "", {})[0]
            same = (old.paths.held_out, old.trainer.eval_sequences) == (paths.held_out, trainer.eval_sequences)
            then, now = job.output / HELD_OUT, Path(str(paths.held_out)) / CORPUS_INFO
            same = same and not (then.is_file() and then.read_bytes() != now.read_bytes())
            require(same, "paths.held_out", f"{job.output} was evaluated on other text; choose another --output")


def start(job: Job, processes: int, threads: int) -> subprocess.Popen[bytes]:
    """Start a job's training; what it says goes to console.txt in its folder."""
    job.output.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "NPROC": str(processes),
        "PYTHON": sys.executable,
        "LOG_DIR": str(job.output / "launcher"),
        "OMP_NUM_THREADS": str(threads),
    }
    command = [str(ROOT / "run_pretrain.sh"), *job.options[1:]]
    print(f"start {job.name}: {job.output / CONSOLE}", flush=True)
    with (job.output / CONSOLE).open("ab") as console:
        return subprocess.Popen(command, env=environment, stdout=console, stderr=subprocess.STDOUT)


def finish(job: Job, status: int) -> str:
    """A finished job's result, in words. Raises InputError if it failed."""
    last = last_evaluation(job.output)
    if status or last is None or last["step"] != job.config.trainer.max_steps:
        lines = (job.output / CONSOLE).read_text(errors="replace").strip().splitlines()
        # With several processes the launcher has the last word.
        told = [line for line in lines if line.startswith("error: ")] or lines
        raise InputError(f"{job.output / CONSOLE}: the run failed: {' '.join(told[-1:])}")
    return f"n-gram perplexity {last.get('ngram_perplexity', float('nan')):,.0f}"


def train(jobs: list[Job], at_once: int, processes: int) -> None:
    """Train what is not trained yet, `at_once` at a time. Raises InputError as soon as one fails."""
    threads = max(1, (os.cpu_count() or 1) // (at_once * processes))
    waiting = [job for job in jobs if not job.done]
    print(f"{len(jobs)} runs, {len(jobs) - len(waiting)} of them finished before; {at_once} at a time", flush=True)
    began, before = time.monotonic(), sum(job.progress for job in jobs)
    active: dict[Job, subprocess.Popen[bytes]] = {}
    try:
        while waiting or active:
            while waiting and len(active) < at_once:
                job = waiting.pop(0)
                active[job] = start(job, processes, threads)
            time.sleep(POLL_SECONDS)
            for job, process in list(active.items()):
                if process.poll() is None:
                    continue
                del active[job]
                result = finish(job, process.returncode)
                progress = sum(job.progress for job in jobs)
                rate = (progress - before) / (time.monotonic() - began)
                left = f"; about {(len(jobs) - progress) / rate / 60:.0f} min left" if rate else ""
                print(f"done  {job.name}: {result}{left}", flush=True)
    finally:
        for process in active.values():
            process.terminate()
            process.wait()


def rows_of(jobs: list[Job]) -> list[Row]:
    """One row of the table for every job, from its log."""
    rows = []
    for job in jobs:
        last = last_evaluation(job.output)
        assert last is not None  # of a job that is done
        rates = [record["sequences_per_second"] for record in read_log(job.output) if record["kind"] == "train"]
        seconds = job.config.data.batch_size / median(rates)
        values = {"rung": job.rung, "seed": job.seed, "steps": last["step"], "seconds_per_step": seconds}
        rows.append(
            values | {key: last.get(key, float("nan")) for key in ("ngram_perplexity", "perplexity", "accuracy")}
        )
    return rows


def markdown(rows: list[Row]) -> str:
    """The rows as a table: each rung's mean over its seeds, with the lowest and highest where there are several."""
    seeds = sorted({int(row["seed"]) for row in rows})
    by_rung = {rung: mine for rung in RUNGS if (mine := [row for row in rows if row["rung"] == rung])}
    reference = "explicit" if "explicit" in by_rung else "the mean"
    usual = mean(float(row["seconds_per_step"]) for row in by_rung.get("explicit", rows))
    lines = [
        f"{rows[0]['steps']} steps each, seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}.",
        "",
        f"| rung | what | n-gram perplexity | unit perplexity | accuracy | time of a step (to {reference}) |",
        "|---|---|---|---|---|---|",
    ]
    for rung, mine in by_rung.items():
        cells = [rung, RUNGS[rung]]
        for key, form in (("ngram_perplexity", ",.0f"), ("perplexity", ",.0f"), ("accuracy", ".1%")):
            values = [float(row[key]) for row in mine]
            spread = f" ({min(values):{form}} - {max(values):{form}})" if len(values) > 1 else ""
            cells.append(f"{mean(values):{form}}{spread}")
        seconds = mean(float(row["seconds_per_step"]) for row in mine)
        cells.append(f"{seconds:.2f} s ({seconds / usual:.2f} x)")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(jobs: list[Job], target: Path) -> None:
    """Perplexities over masked n-grams and over all masked units against steps, a line for every job."""
    figure, panels = new_figure(2)
    colours: dict[str, str] = {}
    for job in sorted(jobs, key=lambda job: list(RUNGS).index(job.rung)):
        label = None if job.rung in colours else f"{job.rung}: {RUNGS[job.rung]}"
        for axes, key in zip(panels, ("ngram_perplexity", "perplexity"), strict=True):
            steps, values = curve(read_log(job.output), "eval", key)
            (line,) = axes.plot(steps, values, "o-", markersize=3, color=colours.get(job.rung), label=label)
            colours[job.rung] = line.get_color()
    for axes, what in zip(panels, ("masked n-grams", "all masked units"), strict=True):
        axes.set(title=f"Held-out perplexity of {what}", xlabel="step", ylabel="perplexity", yscale="log")
    save_figure(figure, panels, target)


def main() -> None:
    parser = OneLineParser(prog="python -m ernie_gram.run_ablation", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="a folder for each run, table, picture"
    )
    parser.add_argument(
        "--rungs",
        nargs="+",
        choices=list(RUNGS),
        default=list(RUNGS),
        metavar="RUNG",
        help="which: " + ", ".join(RUNGS) + " (all)",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], metavar="N", help="train each with these (1)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (%(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="processes of a run, as NPROC (%(default)s)")
    parser.add_argument("--token_corpus", metavar="DIR", help="corpus of the rung `token`, made without a lexicon")
    arguments, overrides = parser.parse_known_args()
    for name in ("jobs", "processes"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name}: must be at least 1")
    jobs = plan(arguments.output, arguments.rungs, arguments.seeds, arguments.token_corpus, overrides)
    check(jobs, arguments.processes)
    # Stopped, it stops what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    train(jobs, arguments.jobs, arguments.processes)
    rows = rows_of(jobs)
    with whole_file(arguments.output / "table.csv") as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    with whole_file(arguments.output / "table.md") as partial:
        partial.write_text(markdown(rows))
    draw(jobs, arguments.output / "curves.png")
    print(f"\n{markdown(rows)}\n{arguments.output}: table.md, table.csv, curves.png")


if __name__ == "__main__":
    one_line_errors(main)
