"""The program `carina`: Ctrl-C from the first moment on, then the command line.

The first Ctrl-C ends the command in order: what is finished stays, and the same command resumes. The second one ends it
at once, whatever it is doing.
"""

import signal
import sys
from types import FrameType
from typing import Final, NoReturn

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells give it."""
_SHOW_CURSOR: Final = "\x1b[?25h"
"""Ends what a progress bar began; after a second Ctrl-C nobody could."""


def main() -> None:
    """Entry point of the program."""
    if (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):  # not where interrupts are ignored: nohup, &
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _repeat_lost_interrupt
    try:
        from carina.cli import app  # noqa: PLC0415 - takes a moment, in which Ctrl-C may come

        app(prog_name="carina")
    except KeyboardInterrupt:
        # Before a command began, or while the last one was ending.
        sys.exit(INTERRUPTED)


def _repeat_lost_interrupt(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that came while Python was cleaning up something, where it prints and drops all exceptions."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    from carina.store.waiting import interrupt_soon  # noqa: PLC0415 - rarely needed

    signal.signal(signal.SIGINT, _interrupt)
    interrupt_soon()


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """First Ctrl-C: leave the next one to the operating system, which ends a process whatever it is doing."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stderr.isatty():
        sys.stderr.write(_SHOW_CURSOR)
        sys.stderr.flush()
    raise KeyboardInterrupt
