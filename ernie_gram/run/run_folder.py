"""The folder of a run: who may write to it, which run it belongs to, and from which checkpoint training continues."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, Any

from ernie_gram.config import require
from ernie_gram.run import checkpoint
from reader.errors import InputError, InUseError, print_warning
from reader.system.lock_files import LOCK_FILE, check_unlocked, lock_file
from reader.system.output_files import check_output_folder

Identity = dict[str, Any]

# The settings; the result of a fine-tuning that has ended; the description of the held-out corpus.
CONFIG, RESULT, HELD_OUT = "config.yaml", "result.json", "held_out.json"
# Settings that take their value from another one if they are null, as an error names them.
NAMES = {"optimizer.decay_steps": "optimizer.decay_steps, or else trainer.max_steps"}
DIGEST, SHOWN_DIGITS = re.compile("[0-9a-f]{32,}"), 12


def check_output(output: Path, is_first: bool = True, option: str = "paths.output") -> None:
    """Raise InputError unless a run, or a folder of several runs, can be made in a folder; creates nothing.

    Args:
        is_first: whether this is rank 0, which alone locks the folder.
    """
    check_output_folder(option, output)
    if is_first:
        check_unlocked(output, f"{option}: {output} is in use")


def lock_output(output: Path, option: str = "paths.output") -> IO[bytes]:
    """Lock the folder of a run, or of several runs, for this process until the returned file is closed; create it.

    Raises InUseError if another process holds the lock: two runs in one folder would remove each other's checkpoints.
    """
    output.mkdir(parents=True, exist_ok=True)
    return lock_file(output / LOCK_FILE, f"{option}: {output} is in use")


def lock_run(output: Path, found: list[Path]) -> IO[bytes]:
    """Lock the folder of a run that has chosen its checkpoint among those that `resume_checkpoint` has found.

    Raises InUseError as `lock_output` does, and if the checkpoints have changed: the run would remove those that
    another process has written since then.
    """
    lock = lock_output(output)
    if checkpoint.checkpoints(output) != found:
        lock.close()
        raise InUseError(f"paths.output: the checkpoints in {output} have changed meanwhile; run the command again")
    return lock


def resume_checkpoint(
    output: Path, identity: Identity, is_first: bool = True, defaults: Identity | None = None
) -> tuple[list[Path], Path | None]:
    """Return the checkpoints in a run's folder, oldest first, and the one from which training continues.

    That is the newest one, or, with a warning on standard error, the newest of those that are not damaged; None if
    training starts from step 0. Checkpoints are large, so each file is read at most once, and only by rank 0. The other
    ranks verify the state, and take the checkpoint that rank 0 has chosen before they load anything (see Trainer).

    Args:
        output: the run's folder.
        identity: all that can change the result of this run.
        is_first: whether this is rank 0.
        defaults: of the settings; an earlier version may lack new ones in its identity.

    Raises InputError if all checkpoints are damaged, or if they are those of a run with another identity, and
    InUseError if another process has locked the folder.
    """
    require(not output.exists() or output.is_dir(), "paths.output", f"{output} is a file")
    if is_first:
        check_unlocked(output, f"paths.output: {output} is in use")
    found = checkpoint.checkpoints(output)
    chosen, damaged = checkpoint.newest_and_damage(output, checkpoint.FILES if is_first else (checkpoint.STATE,))
    for damage in damaged:
        if chosen is None:
            raise InputError(
                f"{damage}; there is no valid checkpoint: choose another paths.output to start from step 0"
            )
        # The other ranks find the damage of some files only, and would repeat it.
        if is_first:
            print_warning(checkpoint.passed_over(damage, chosen))
    if chosen:
        recorded = checkpoint.load_state(chosen).identity
        theirs = {key: value for key, value in (defaults or {}).items() if key in identity} | recorded
        if differences := identity_differences(theirs, identity):
            advice = "choose another paths.output, or restore these settings"
            raise InputError(f"{chosen}: belongs to another run ({'; '.join(differences)}); {advice}")
    return found, chosen


def identity_differences(earlier: Identity, run_identity: Identity, where: str = "the checkpoint") -> list[str]:
    """Return one line for each entry that differs between an earlier identity, that of `where`, and this run's.

    Whole values are compared; of digests, the first characters are shown.
    """
    keys = sorted(earlier.keys() | run_identity.keys())
    pairs = ((key, earlier.get(key), run_identity.get(key)) for key in keys)
    return [
        f"{NAMES.get(key, key)}: {_shown(there)} in {where}, {_shown(here)} in this run"
        for key, there, here in pairs
        if there != here
    ]


def _shown(value: object) -> str:
    return DIGEST.sub(lambda digest: digest[0][:SHOWN_DIGITS], str(value))
