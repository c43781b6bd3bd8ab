"""``latentree`` and ``python -m latentree``: the process around a command."""

import signal
import sys


def start() -> None:
    """Run the command of the shell and end the process.

    Before and after a command an interrupt ends the process without a word. Python would print
    where it was, be it in the middle of an import.
    """
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from latentree.cli import main

    code = main()
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


if __name__ == "__main__":
    start()
