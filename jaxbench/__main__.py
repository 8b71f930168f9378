# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""``python -m jaxbench`` is ``jaxbench``."""

import _signal  # of the interpreter itself: importing `signal` takes milliseconds


def main() -> None:
    # A command may be stopped in its first moment, so signals wait until there is a handler for them.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT, _signal.SIGTERM))
    from jaxbench import interrupts

    with interrupts.ending():
        interrupts.listen()  # before the other imports, which take a part of the first second
        from jaxbench import app

        app.main()


if __name__ == "__main__":
    main()
