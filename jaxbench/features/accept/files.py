# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a test leaves for other programs: lists of nodes for a queue, JUnit for CI, OpenMetrics for monitoring. Without
jax.

A folder of an earlier test loses its files when a new one begins, so a test that is interrupted leaves no old list of
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from jaxbench.core.store import write_atomic, write_json
from jaxbench.errors import UserError
from jaxbench.features.accept import outcome, rule
from jaxbench.features.accept.outcome import Acceptance, Judged

PASSING, FAILING, JUNIT, METRICS = "passing.txt", "failing.txt", "junit.xml", "accept.prom"
PAGE = "accept.html"
ALL = (PASSING, FAILING, JUNIT, METRICS, PAGE)
EARLIER = 20  # tests of a host that the page lists


def begin(folder: Path) -> None:
    """Makes the folder, keeps the result of an earlier test in it for the history, and removes its other files."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / outcome.FILE).exists():
        before = outcome.read(folder / outcome.FILE)
        (folder / outcome.FILE).rename(folder / f"accept-{before.started.translate({58: 45, 43: 45})}.json")
    for name in ALL:
        (folder / name).unlink(missing_ok=True)


def write(folder: Path, result: Acceptance) -> None:
    write_json(folder / outcome.FILE, result.document())
    write_atomic(folder / PASSING, _nodes(result.passing(), result.failing()))
    write_atomic(folder / FAILING, _nodes(result.failing()))
    write_atomic(folder / JUNIT, junit(result))
    write_atomic(folder / METRICS, metrics(result))


def _nodes(names: Sequence[str], without: Sequence[str] = ()) -> str:
    """One node a line, as `srun --exclude=./failing.txt` reads it. Processes of one node, "n0/1", share it: a node with
    a
    failing process does not pass."""
    bad = {name.partition("/")[0] for name in without}
    nodes = dict.fromkeys(name.partition("/")[0] for name in names)
    return "".join(f"{node}\n" for node in nodes if node not in bad)


def history(folder: Path, host: str) -> list[Acceptance]:
    """Earlier tests with this host, the latest first: of this folder and of those next to it."""
    near = folder.resolve().parent
    files = {*folder.glob("accept*.json"), *near.glob("*/accept*.json"), *near.parent.glob("*/nodes-*/accept*.json")}
    found = []
    for file in files:
        try:
            result = outcome.read(file)
        except UserError:  # a damaged file of another test is no reason to fail this one
            continue
        if host in {each.name for each in result.hosts}:
            found.append(result)
    ordered = sorted({each.started: each for each in found}.values(), key=lambda each: each.started, reverse=True)
    return ordered[:EARLIER]


def junit(result: Acceptance) -> bytes:
    """A test case for each verdict: bad ones are failures, open ones and those that nothing judged are skipped."""
    skipped = (rule.CANNOT_TELL, rule.NOT_JUDGED)
    counts = {
        "tests": len(result.cells),
        "failures": sum(cell.verdict in rule.BAD for cell in result.cells),
        "errors": 0,
        "skipped": sum(cell.verdict in skipped for cell in result.cells),
    }
    attributes = {"name": "jaxbench accept", **{name: str(count) for name, count in counts.items()}}
    root = Element("testsuites", attributes)
    suite = SubElement(root, "testsuite", {**attributes, "time": f"{result.seconds:.1f}"})
    for cell in result.cells:
        case = SubElement(suite, "testcase", classname=_clean(cell.host), name=_clean(f"{cell.probe} {cell.unit}"))
        said = _clean(f"{cell.verdict}: {cell.text or cell.reference}")
        if cell.verdict in rule.BAD:
            SubElement(case, "failure", type=cell.verdict, message=said).text = said
        elif cell.verdict in skipped:
            SubElement(case, "skipped", message=said)
    SubElement(suite, "system-out").text = _clean("\n".join([result.verdict, *result.sentences]))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _clean(text: str) -> str:
    """Without characters that XML does not allow."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def metrics(result: Acceptance) -> str:
    """OpenMetrics 1.0 text, for example for the collector of text files of a node exporter."""
    lines = []

    def family(name: str, help: str, cells: Iterable[Judged], value: Callable[[Judged], float | None]) -> None:
        lines.extend([f"# TYPE jaxbench_accept_{name} gauge", f"# HELP jaxbench_accept_{name} {help}"])
        for cell in cells:
            if (number := value(cell)) is not None:
                labels = {"host": cell.host, "device": cell.device, "unit": cell.unit, "probe": cell.probe}
                lines.append(f"jaxbench_accept_{name}{_labels(labels)} {number:.9g}")

    family("share", "Measured rate over that of the reference.", result.cells, lambda cell: cell.share)
    family("share_low", "Lower end of the interval of the share.", result.cells, lambda cell: cell.lo)
    family("share_high", "Upper end of the interval of the share.", result.cells, lambda cell: cell.hi)
    family("rate", "Measured rate: FLOP/s, bytes/s or 1/s.", result.cells, lambda cell: cell.rate)
    family("failed", "1 if the unit failed.", result.cells, lambda cell: float(cell.verdict in rule.BAD))
    lines += ["# TYPE jaxbench_accept_host_passed gauge", "# HELP jaxbench_accept_host_passed 1 if the host passed."]
    lines += [
        f"jaxbench_accept_host_passed{_labels({'host': host.name})} {int(host.verdict == rule.PASS)}"
        for host in result.hosts
    ]
    lines += [
        "# TYPE jaxbench_accept_exit_code gauge",
        "# HELP jaxbench_accept_exit_code 0 pass, 1 fail, 3 cannot tell.",
    ]
    lines += [f"jaxbench_accept_exit_code {result.exit_code}", "# EOF"]
    return "\n".join(lines) + "\n"


def _labels(names: dict[str, str]) -> str:
    """Labels in the text format of Prometheus."""
    escaped = {name: v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, v in names.items()}
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"
