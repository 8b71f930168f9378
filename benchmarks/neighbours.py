# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Does a run name what disturbed it? A short main job (cnn on 1 and 2 CPU devices) with and without neighbours.

  quiet:       nothing else runs. The run must blame nobody.
  busy:        from its first round on, a process keeps one core busy.
  hidden:      for the first half of its rounds, a process takes half of a core, and the clocks of the run do not show
               it. `benchmarks/hidden_neighbour` simulates a neighbour on the other hardware thread of the core.
  quota:       the run starts in a control group that may use one core.
  late quota:  the control group gets this quota with the first round.
  one core:    the run may use one of two CPUs.

Each run says whether the page names the cause first, whether the interval of the efficiency contains the median of the
quiet runs (without a headline because of the cause, there is none), and whether the page gives advice about the
program. Use a machine of two cores that does nothing else. Quotas need control groups that this process may write.

Run: python -m benchmarks.neighbours [--repeats=10] [--only=quiet,busy,hidden] [--budget_s=10]. Exit code 1 if a cause
was not named, if a quiet run blames somebody, or if a disturbed run gives advice about the program.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from jaxbench.core.store import RECORDS, RunFolder
from jaxbench.machine import cpu_quota
from jaxbench.report import run_report
from jaxbench.report.run_report import RunReport

HERE = Path(__file__).parent
SETTINGS = ("scaling=strong", "mesh.devices=1,2")
# What the page must say, by case. "": it must name no cause.
CAUSES = {
    "quiet": "",
    "busy": "other processes took",
    "hidden": "times slower than at its best",
    "quota": "a CPU quota of 1.0 cores",
    "late quota": "a CPU quota of 1.0 cores",
    "one core": "may use only 1 of the machine's",
}
BURN = "while True: sum(range(100_000))"
PERIOD_US = 100_000


@dataclass
class Neighbour:
    """A process on one core that can be stopped. Its state file is what `hidden_neighbour` reads."""

    state: Path
    cpu: int = field(default_factory=lambda: max(os.sched_getaffinity(0)))

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(["taskset", "-c", str(self.cpu), sys.executable, "-c", BURN])
        self.run(False)

    def run(self, runs: bool) -> None:
        if self.process.poll() is not None:  # it ended with the run
            return
        os.kill(self.process.pid, signal.SIGCONT if runs else signal.SIGSTOP)
        new = self.state.with_suffix(".new")
        new.write_text(json.dumps({"pid": self.process.pid, "cpu": self.cpu, "runs": runs}))
        new.replace(self.state)  # a reader never sees half a file

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def control_group() -> Iterator[tuple[Path, Callable[[], None]]]:
    """(a new control group, what gives it a quota of one core)."""
    first = cpu_quota.MOUNT / "cpu"
    parent = first if first.is_dir() else cpu_quota.MOUNT
    folder = parent / f"jaxbench-neighbours-{os.getpid()}"
    folder.mkdir()

    def one_core() -> None:
        if first.is_dir():
            (folder / "cpu.cfs_quota_us").write_text(str(PERIOD_US))
        else:
            (folder / "cpu.max").write_text(f"{PERIOD_US} {PERIOD_US}")

    try:
        yield folder, one_core
    finally:
        folder.rmdir()


def command(folder: Path, budget_s: float) -> list[str]:
    flags = [f"--config.{setting}" for setting in (*SETTINGS, f"measure.budget_s={budget_s:g}")]
    return [sys.executable, "-m", "jaxbench", "run", "cnn", f"--workdir={folder}", *flags]


def at_first_round(folder: Path, process: subprocess.Popen[str], then: Callable[[], None]) -> None:
    """Calls `then` once the run has recorded a round."""
    records = folder / RECORDS
    while process.poll() is None:
        if records.exists() and '"kind":"round"' in records.read_text():
            then()
            return
        time.sleep(0.1)


@dataclass
class Start:
    """How a run is started. prefix: words before its command. then: called with its first round."""

    prefix: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    then: Callable[[], None] = lambda: None


def start(case: str, folder: Path, budget_s: float, stack: contextlib.ExitStack) -> Start:
    """How a run of this case starts. What disturbs it ends with `stack`."""
    if case == "one core":
        return Start(prefix=["taskset", "-c", str(min(os.sched_getaffinity(0)))])
    if "quota" in case:
        group, one_core = stack.enter_context(control_group())
        prefix = ["sh", "-c", f'echo $$ > {group / "cgroup.procs"} && exec "$@"', "sh"]
        if case == "late quota":
            return Start(prefix=prefix, then=one_core)
        one_core()
        return Start(prefix=prefix)
    if case == "quiet":
        return Start()
    neighbour = Neighbour(folder / "neighbour.json")
    stack.callback(neighbour.end)
    if case == "busy":
        return Start(then=lambda: neighbour.run(True))

    def half() -> None:
        neighbour.run(True)
        threading.Timer(budget_s / 2, neighbour.run, [False]).start()

    path = [str(HERE / "hidden_neighbour"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return Start(variables={"HIDDEN_NEIGHBOUR": str(neighbour.state), "PYTHONPATH": os.pathsep.join(path)}, then=half)


def run(case: str, folder: Path, budget_s: float) -> RunReport:
    """One run of a case, in its own folder. Raises SystemExit if it has no result."""
    with contextlib.ExitStack() as stack:
        how = start(case, folder, budget_s, stack)
        process = subprocess.Popen(
            [*how.prefix, *command(folder / "run", budget_s)], env={**os.environ, **how.variables}, cwd=HERE.parent,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        watch = threading.Thread(target=at_first_round, args=(folder / "run", process, how.then))
        watch.start()
        said = process.communicate()[0]
        watch.join()
    if not (folder / "run" / RECORDS).exists():
        raise SystemExit(said)
    return run_report.find(RunFolder(folder / "run"))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run said. efficiency: (value, lo, hi) of two devices; None if the headline says that it is of no use."""

    seconds: float
    headline: str
    causes: tuple[str, ...]
    advice: tuple[str, ...]
    efficiency: tuple[float, float, float] | None

    def named(self, case: str) -> bool:
        """Whether the first cause that the page names is that of the case; for a quiet run, whether it names none."""
        words = ("this machine was busy", *filter(None, CAUSES.values()))
        blamed = any(word in self.headline for word in words)
        told = [self.headline] if blamed else list(self.causes)
        if not CAUSES[case]:
            return not told
        return bool(told) and CAUSES[case] in told[0].split(" and ")[0]


def outcome(report: RunReport, seconds: float) -> Outcome:
    """The outcome of a finished run."""
    page, headline = report.sentences(), report.headlines[0]
    row = max(report.rows, key=lambda each: (each.point.devices <= 2, each.point.devices))
    known = "this machine was busy" not in headline and row.efficiency.has_interval
    return Outcome(
        seconds=seconds, headline=headline, causes=tuple(page["Load"]),
        advice=tuple(text for text in page["What would help"] if "this machine was busy" not in text),
        efficiency=(row.efficiency.value, row.efficiency.lo, row.efficiency.hi) if known else None,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default=",".join(CAUSES))
    parser.add_argument("--budget_s", type=float, default=10.0)
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False)
    found: dict[str, list[Outcome]] = {case: [] for case in args.only.split(",")}
    for _ in range(args.repeats):  # in turns, so that a change of the machine meets all cases
        for case, outcomes in found.items():
            with tempfile.TemporaryDirectory() as folder:
                start = time.monotonic()
                outcomes.append(outcome(run(case, Path(folder), args.budget_s), time.monotonic() - start))
            last = outcomes[-1]
            console.print(f"{case}, {last.seconds:.0f} s: {last.headline}")
            for text in (*last.causes, *(last.advice if CAUSES[case] else ())):
                console.print(f"    {text}")
    console.print(table(found))
    failed = any(not each.named(case) for case, of in found.items() for each in of)
    raise SystemExit(failed or any(each.advice for case, of in found.items() if CAUSES[case] for each in of))


def table(found: dict[str, list[Outcome]]) -> Table:
    """One line for each case."""
    quiet = [each.efficiency[0] for each in found.get("quiet", ()) if each.efficiency]
    expected = statistics.median(quiet) if quiet else None
    made = Table("case", "runs", "cause named", "intervals", "contain the quiet value", "advice about the program")
    for case, of in found.items():
        claimed = [each.efficiency for each in of if each.efficiency]
        inside = [each for each in claimed if expected is not None and each[1] <= expected <= each[2]]
        named = sum(each.named(case) for each in of)
        shown = f"{named} of {len(of)}" if CAUSES[case] else f"{len(of) - named} of {len(of)} blame somebody"
        made.add_row(
            case, str(len(of)), shown, str(len(claimed)),
            "" if expected is None else f"{len(inside)} of {len(claimed)}",
            str(sum(bool(each.advice) for each in of)) if CAUSES[case] else "",
        )  # fmt: skip
    return made


if __name__ == "__main__":
    main()
