# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verbs that compare runs or prepare a comparison: compare, ab, baseline, check, calibrate, card, repro.

Exit codes: 0 same or faster, 1 slower, 2 inconclusive, 3 no answer: not comparable, or bad input.
"""

from __future__ import annotations

import datetime
import math
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench import commandline
from jaxbench import config as config_lib
from jaxbench.analysis import allocation
from jaxbench.analysis.intervals import MIN_PROCESSES
from jaxbench.errors import UserError
from jaxbench.records import identity, learned
from jaxbench.records.store import write_atomic, write_json
from jaxbench.verdicts import baseline as baselines
from jaxbench.verdicts import calibration, comparable, comparison, metric
from jaxbench.verdicts.comparison import Comparison

if TYPE_CHECKING:
    from jaxbench.ab import Side

MIN_THRESHOLD = 0.01  # the least threshold of check: a smaller difference is not worth an alarm
MAX_THRESHOLD = 0.5  # with a larger threshold, the machine is too noisy for check


def compare(workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench compare --a=DIR --b=DIR. It writes files only with --workdir. Returns the exit code."""
    if not (flag.a and flag.b):
        raise UserError("jaxbench compare needs --a=DIR and --b=DIR, the folders of two runs.")
    if any(learned.holds_trainings(Path(side)) for side in (flag.a, flag.b)):
        return _compare_trainings(Path(flag.a), Path(flag.b), workdir if flag.workdir else None, flag, console)
    by, across = metric.named(flag.metric), [word for word in flag.across.split(",") if word]
    found = comparison.compare(Path(flag.a), Path(flag.b), by, margin=margin_of(flag), across=across)
    return _answer(found, workdir if flag.workdir else None, f"{flag.a} against {flag.b}", console)


def _compare_trainings(a: Path, b: Path, folder: Path | None, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench compare for two trainings, or for two folders with several seeds each."""
    from jaxbench.report.drawing import canvas
    from jaxbench.report.figures import learning as figure
    from jaxbench.verdicts import judge, trainings

    sides = learned.read_all(a), learned.read_all(b)
    found = trainings.compare(*sides, margin=margin_of(flag))
    for answer in found:
        console.print(answer.sentence, highlight=False, soft_wrap=True)
    if folder is not None:
        drawn = {f"{which}: {path.name}": side for which, path, side in zip("AB", (a, b), sides, strict=True)}
        files = canvas.render(lambda: figure.draw(drawn, title=f"{a.name} against {b.name}"))
        canvas.write(files, folder / "figures", figure.NAME)
        write_atomic(folder / "summary.md", "".join(f"- {answer.sentence}\n" for answer in found))
        console.print(f"\nWritten to {folder}: summary.md, figures/{figure.NAME}.svg", highlight=False, soft_wrap=True)
    return judge.EXIT[found[0].verdict]


def ab(experiment: str, workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench ab EXPERIMENT --a="--config.x=1" --b="--config.x=2", or with --a=ref:main, or with both."""
    from jaxbench import ab as runner

    sides = side_of(flag.config, flag.a or ""), side_of(flag.config, flag.b or "")
    if not 0 < flag.budget_s < math.inf:
        raise UserError(f"--budget_s={flag.budget_s} must be above 0 and finite: use 600 for ten minutes.")
    budget = runner.Budget(seconds=flag.budget_s, metric=metric.named(flag.metric), margin=margin_of(flag))
    outcome = runner.run(experiment, sides, workdir, budget, console)
    console.print(outcome.why[:1].upper() + outcome.why[1:] + ".", highlight=False)
    names = [f"{which} ({words or 'default settings'})" for which, words in (("A", flag.a), ("B", flag.b))]
    found = Comparison(
        a=names[0],
        b=names[1],
        answers=outcome.answers,
        left_out=outcome.left_out,
        software=outcome.software,
        across=outcome.across,
    )
    return _answer(found, workdir, f"{experiment}: {names[0]} against {names[1]}", console)


def margin_of(flag: flags.FlagValues) -> float:
    """--margin. Raises UserError unless it is between 0 and 1."""
    if not 0 < flag.margin < 1:
        raise UserError(f"--margin={flag.margin} must be between 0 and 1: use 0.02 for 2 %.")
    return float(flag.margin)


def side_of(config: ConfigDict, text: str) -> Side:
    """One arm of ab: "ref:main --config.batch=64". Either part may be missing. Raises UserError."""
    from jaxbench.ab import Side
    from jaxbench.other_commit import PREFIX

    try:
        words = shlex.split(text)
    except ValueError as error:  # from shlex: a missing closing quotation mark
        raise UserError(f"{text!r} cannot be read ({error}).") from error
    refs = [word for word in words if word.startswith(PREFIX)]
    if len(refs) > 1:
        raise UserError(f"{text!r} names two commits, {refs[0]} and {refs[1]}: each arm measures one.")
    return Side(commandline.changed(config, [word for word in words if word not in refs]), *refs)


def baseline(workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench baseline --run=DIR --name=NAME."""
    del workdir  # it measures nothing
    if not (flag.run and flag.name):
        raise UserError("jaxbench baseline needs --run=DIR, the folder of a run, and --name=NAME.")
    path = baselines.keep(Path(flag.run), flag.name)
    few = [n for n, one in comparable.samples_of(comparable.read(path)).items() if len(one.processes) < MIN_PROCESSES]
    console.print(f"Kept as {path}.", highlight=False, soft_wrap=True)
    if few:
        console.print(
            f"It was measured by fewer than {MIN_PROCESSES} processes, so check will use the A/A spread that jaxbench "
            "calibrate found. A run with --config.measure.processes=5 measures its own.",
            style="yellow",
            highlight=False,
        )
    return 0


def check(experiment: str, workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench check EXPERIMENT --name=NAME: reruns with the baseline's config, and compares."""
    from jaxbench.machine import manifest
    from jaxbench.runner import run as runner

    name = flag.name
    if not name:
        raise UserError("jaxbench check needs --name=NAME, the name of a baseline.")
    path = baselines.find(name)
    old = comparable.read(path)
    if old.config.get("experiment") != Path(experiment).stem:
        raise UserError(f"baseline '{name}' measured {old.config.get('experiment')}, not {experiment}.")
    known = calibration.load(old.manifest, str(old.config["experiment"]))
    if known is None:
        raise UserError("this machine is not calibrated, so check has no threshold: run jaxbench calibrate first.")
    if known.threshold > MAX_THRESHOLD:
        raise UserError(f"{_too_noisy(known.threshold)} and run jaxbench calibrate again.")
    config = config_lib.restored(experiment, old.config)
    if other := identity.differences(old.manifest, manifest.probe(str(config.mesh.platform))):
        raise UserError(f"baseline '{name}' was measured on another machine ({identity.sentence(other)}).")
    if config.measure.rounds != config_lib.AUTO:  # with "auto" there are enough processes anyway
        rounds, processes = config_lib.counts(config.measure.rounds, config.measure.processes)
        with config.unlocked():
            config.measure.processes = max(processes, MIN_PROCESSES)
            config.measure.rounds = max(rounds, config.measure.processes)
    runner.run(experiment, config, workdir, console, allocation.look)
    margin = max(MIN_THRESHOLD, known.threshold)
    found = comparison.compare(path, workdir, metric.METRICS["step_s"], margin=margin)
    return _answer(found, workdir, f"{experiment} against {name}", console)


def calibrate(experiment: str, workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench calibrate EXPERIMENT: the experiment against itself, in many processes."""
    from jaxbench.runner import run as runner

    count, least = flag.config.measure.processes, calibration.MIN_CALIBRATION_PROCESSES
    if count < least:
        raise UserError(f"--config.measure.processes={count} is too few to calibrate with: use at least {least}.")
    runner.run(experiment, flag.config, workdir, console, allocation.look)
    run = comparable.read(workdir)
    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    name = str(run.config["experiment"])
    found = calibration.calibrate(comparable.samples_of(run), name, time, comparable.measured(run))
    earlier = calibration.load(run.manifest, name)
    found = found.after(earlier if earlier and earlier.experiment == name else None)
    path = calibration.save(run.manifest, found)
    threshold = max(MIN_THRESHOLD, found.threshold)
    use = f"jaxbench check ignores differences below {100 * threshold:.2g} %."
    if threshold > MAX_THRESHOLD:
        use = f"{_too_noisy(threshold)} and calibrate again."
    for sentence in (
        f"The A/A spread between processes is {100 * found.sd:.2g} % here (standard deviation, {found.df} degrees of "
        "freedom).",
        _sessions(found),
        f"{found.alarms} of {found.comparisons} comparisons of this run with itself raised a false alarm; in 95 % of "
        f"them the overall difference is below {100 * found.threshold:.2g} %.",
        f"{use} Kept in {path}.",
    ):
        console.print(sentence, highlight=False, soft_wrap=True)
    return 0


def _sessions(found: calibration.Calibration) -> str:
    count = len(found.sessions)
    if count >= calibration.MIN_SESSIONS:
        return (
            f"Its {count} sessions differ by {100 * found.session_sd:.2g} % (standard deviation). Every comparison of "
            "two runs includes that; more sessions make it more certain."
        )
    return (
        f"The variation between sessions is assumed ({100 * found.spread.session_sd:.2g} %) until there are "
        f"{calibration.MIN_SESSIONS}, at least an hour apart; this is number {count}: calibrate again on another day."
    )


def _too_noisy(threshold: float) -> str:
    return (
        f"Runs of one program vary by {100 * threshold:.3g} % on this machine, too much for check: stop other "
        "programs, or measure longer blocks (--config.measure.block_s=0.2),"
    )


def card(workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench card --run=DIR."""
    from jaxbench.cards import card as maker
    from jaxbench.cards import gallery

    del workdir  # it measures nothing
    if not flag.run:
        raise UserError("jaxbench card needs --run=DIR, the folder of a run.")
    return maker.save(Path(flag.run), gallery.FOLDER, console)


def repro(workdir: Path, flag: flags.FlagValues, console: Console) -> int:
    """jaxbench repro --card=FILE."""
    from jaxbench.cards import repro as again
    from jaxbench.cards.agreement import MARGIN

    if not flag.card:
        raise UserError("jaxbench repro needs --card=FILE, the file of a result card.")
    margin = margin_of(flag) if flag["margin"].present else MARGIN
    return again.repro(Path(flag.card), workdir, console, margin=margin)


def _answer(found: Comparison, folder: Path | None, name: str, console: Console) -> int:
    """Prints the verdict, and writes it into the folder for people and for CI. Returns the exit code."""
    from jaxbench.report.drawing import canvas
    from jaxbench.report.figures import factors as side_by_side
    from jaxbench.report.figures import verdicts as figure
    from jaxbench.report.verdicts import data, markdown, terminal, xml

    terminal.show(found, console)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "comparison.json", data.as_json(found))
        write_atomic(folder / "junit.xml", xml.junit(found, name))
        write_atomic(folder / "summary.md", markdown.markdown(found, name))
        files = ["summary.md", "comparison.json", "junit.xml"]
        for which, draw in (("comparison", figure.draw), ("waterfalls", side_by_side.draw)):
            drawn = canvas.render(partial(draw, found))
            canvas.write(drawn, folder / "figures", which)
            files += [f"figures/{which}.svg"] if drawn else []
        console.print(f"\nWritten to {folder}: {', '.join(files)}", highlight=False, soft_wrap=True)
    return found.exit_code
