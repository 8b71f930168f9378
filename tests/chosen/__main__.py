# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which tests `make test` needs: it leaves out those of `left_out.txt`, which `make test-all` runs.

python -m tests.chosen record FOLDER [WORDS OF PYTEST]   Run tests, and write which lines each runs. Python >= 3.12.
python -m tests.chosen coverage FOLDER...                Print how many of these lines `make test` runs.
python -m tests.chosen choose SECONDS FOLDER...          Write left_out.txt for this many CPU seconds.
python -m tests.chosen mutations FILE [FOLDER...]        Plant each fault of mutations.toml; append to FILE who saw it.

To record all tests: `record all -m "" -n 2 --dist=worksteal`, or in parts, one folder each. An interrupted `mutations`
continues where it stopped.
"""

from __future__ import annotations

import sys
from pathlib import Path

from . import choice, mutations, recording


def main(words: list[str]) -> int | str:
    match words:
        case ["record", folder, *rest]:
            return recording.record(Path(folder), rest)
        case ["coverage", first, *more]:
            return choice.print_coverage(recording.read([first, *more]))
        case ["choose", seconds, first, *more]:
            return choice.choose(float(seconds), recording.read([first, *more]))
        case ["mutations", results, *folders]:
            return mutations.run(Path(results), recording.read(folders))
    return __doc__ or ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
