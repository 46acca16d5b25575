"""The one exception that means "the user can mend this": its message is shown as a single line."""

from __future__ import annotations

import sys
from collections.abc import Callable


class InputError(Exception):
    """Bad input. The message names the file, line or key, and says what to do."""


def one_line_errors(main: Callable[[], None]) -> None:
    """Run `main`; an InputError becomes one line on standard error and exit status 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(0)
