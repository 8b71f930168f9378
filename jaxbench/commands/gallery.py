# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench gallery`: all papers that were run, as one page."""

from __future__ import annotations

from pathlib import Path

from absl import flags
from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

flags.DEFINE_string("docs", None, "gallery: the documentation folder that gets GALLERY.md and its figures.")

VERB = Verb(
    usage="gallery",
    help="all papers that were run, as one page",
    group="explain",
    flags=("workdir", "docs"),
    examples=(
        "gallery",
        "gallery --workdir=results/papers",
        "gallery --docs=docs",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.suites.papers import page, session

    docs = Path(FLAGS.docs) if FLAGS.docs else None
    page.gallery(Path(FLAGS.workdir) if FLAGS.workdir else session.FOLDER, console, docs)
    return 0
