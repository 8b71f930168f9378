# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench compare`: is run B faster than A? Also how the other comparing verbs answer.

Exit codes: 0 same or faster, 1 slower, 2 inconclusive, 3 no answer: not comparable, or bad input.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

if TYPE_CHECKING:
    from jaxbench.features.comparison.comparison import Comparison

flags.DEFINE_string("across", "", "compare: the config fields that may differ between the runs.")

VERB = Verb(
    usage="compare --a=DIR --b=DIR",
    help="is run B faster than A, slower, the same, or is that inconclusive?",
    group="compare",
    details="compare and ab take --metric=step_s|throughput and --margin=0.02; compare also --across=FIELD,... Of two "
    "trainings, or of two folders with seeds of one each, compare says which reaches its target sooner.",
    flags=("a", "b", "across", "metric", "margin", "workdir", "export"),
    required=("a", "b"),
    answers=True,
    examples=(
        "compare --a=results/a --b=results/b",
        "compare --a=results/a --b=results/b --metric=throughput --margin=0.05",
        "compare --a=results/a --b=results/b --across=strategy,mesh.devices",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    """Writes files only with --workdir or --export."""
    from jaxbench.features.comparison import comparison, judge
    from jaxbench.features.training import trainings

    folder, names = workdir if FLAGS.workdir or FLAGS.export else None, exports_asked()
    if any(trainings.holds_trainings(Path(side)) for side in (FLAGS.a, FLAGS.b)):
        return _compare_trainings(Path(FLAGS.a), Path(FLAGS.b), folder, names, console)
    by, across = judge.metric_named(FLAGS.metric), [word for word in FLAGS.across.split(",") if word]
    margin = judge.margin_of(FLAGS.margin)
    found = comparison.compare(Path(FLAGS.a), Path(FLAGS.b), by, margin=margin, across=across)
    code = answer(found, folder, name := f"{FLAGS.a} against {FLAGS.b}", console)
    export(found, name, Path(FLAGS.b), workdir, names, console)
    return code


def exports_asked() -> tuple[str, ...]:
    """The formats of --export. Raises UserError before anything is measured."""
    if FLAGS.export is None:
        return ()
    from jaxbench.features.exports import formats

    return formats.asked(FLAGS.export, measures="comparison")


def export(found: Comparison, name: str, b: Path, folder: Path, names: Sequence[str], console: Console) -> None:
    """Exports a comparison, and the numbers of run B, into the folder."""
    if names:
        from jaxbench.features.exports import formats, source

        formats.export(source.ComparisonSource(found, name, b, folder), names, console)


def _compare_trainings(a: Path, b: Path, folder: Path | None, names: Sequence[str], console: Console) -> int:
    """jaxbench compare for two trainings, or for two folders with several seeds each."""
    from jaxbench.core.store import write_atomic
    from jaxbench.features.comparison import comparison, judge
    from jaxbench.features.training import trainings
    from jaxbench.features.training.figures import draw_learning
    from jaxbench.report.drawing import canvas

    sides = trainings.read_curves(a), trainings.read_curves(b)
    found = comparison.compare_trainings(*sides, margin=judge.margin_of(FLAGS.margin))
    for answer in found:
        console.print(answer.sentence, highlight=False, soft_wrap=True)
    if folder is not None:
        drawn = {f"{which}: {path.name}": side for which, path, side in zip("AB", (a, b), sides, strict=True)}
        files = canvas.render(lambda: draw_learning(drawn, title=f"{a.name} against {b.name}"))
        canvas.write(files, folder / "figures", draw_learning.name)
        write_atomic(folder / "summary.md", "".join(f"- {answer.sentence}\n" for answer in found))
        console.print(
            f"\nWritten to {folder}: summary.md, figures/{draw_learning.name}.svg", highlight=False, soft_wrap=True
        )
        if names:
            from jaxbench.features.exports import formats, source

            compared = source.TrainingsComparedSource(found, f"{a.name} against {b.name}", b, folder)
            formats.export(compared, names, console)
    return judge.EXIT[found[0].verdict]  # in seconds: fewer steps may take longer


def answer(found: Comparison, folder: Path | None, name: str, console: Console) -> int:
    """Prints the verdict, and writes it into the folder for people and for CI. Returns the exit code."""
    from jaxbench.core.store import write_atomic, write_json
    from jaxbench.features.comparison import page as comparison
    from jaxbench.features.comparison.figures import draw_factors, draw_verdicts
    from jaxbench.report.drawing import canvas

    comparison.show(found, console)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "comparison.json", comparison.as_json(found))
        write_atomic(folder / "junit.xml", comparison.junit(found, name))
        write_atomic(folder / "summary.md", comparison.markdown(found, name))
        files = ["summary.md", "comparison.json", "junit.xml"]
        for which, draw in (("comparison", draw_verdicts), ("waterfalls", draw_factors)):
            drawn = canvas.render(partial(draw, found))
            canvas.write(drawn, folder / "figures", which)
            files += [f"figures/{which}.svg"] if drawn else []  # two runs without ablations have no waterfalls
        console.print(f"\nWritten to {folder}: {', '.join(files)}", highlight=False, soft_wrap=True)
    return found.exit_code
