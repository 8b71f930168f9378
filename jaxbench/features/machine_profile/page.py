# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a machine profile, from the runs that measured it, and its numbers as a table."""

from __future__ import annotations

import dataclasses
import functools
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console

from jaxbench.analysis import machine_profile, quantities
from jaxbench.analysis.alpha_beta import POOR
from jaxbench.analysis.points import between
from jaxbench.analysis.quantities import devices, seconds
from jaxbench.core.store import RunFolder, write_atomic
from jaxbench.records import identity
from jaxbench.records.machine_profile import CopyRate, LaunchCost, LinkFit, MachineProfile, Peak
from jaxbench.report import build, page, run_report
from jaxbench.report.build import RunOutcome
from jaxbench.report.drawing import canvas
from jaxbench.report.drawing.notes import display
from jaxbench.report.figures import roofline
from jaxbench.report.figures.roofline import of_cases
from jaxbench.report.page import Page, Picture, Purpose, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.run_report import OVERSUBSCRIBED, RunReport
from jaxbench.report.sentences import refusals
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill

PAGE = "machine.html"
# The views with figures that characterise a machine, in the order of the page.
_KEY = ("stream", "matmul", "dispatch", "transfer", "collectives")
_SHOWN = {"collectives": ("busbw", "alpha_beta")}  # of a view with several figures; others are named as the view
Run = tuple[Path, RunReport]
_COLUMNS = (
    Column("what", "what", kind=TEXT, terminal=ALWAYS, definition="machinejson"),
    Column("of", "of", kind=TEXT, terminal=ALWAYS),
    Column("where", "where", kind=TEXT, terminal=ALWAYS),
    Column("value", "value", terminal=ALWAYS, definition="machinejson"),
    Column("95 % interval", "interval", definition="intervals"),
    Column("measured by", "by", kind=TEXT),
)


def write(
    folder: str | os.PathLike[str], runs: Sequence[Path], profile: MachineProfile, console: Console | None = None
) -> RunOutcome:
    """Writes `machine.html` and its roofline into `folder`. With a `console`, it also prints the profile.

    The other figures are taken from the reports of the single runs.

    Args:
      runs: the run folders, in `folder` or next to it, each with its report.
      profile: the machine profile, from `machine_profile.build`.

    Raises UserError if a run folder is damaged, or is not one.
    """
    folder = Path(folder)
    analysed = [(path, run_report.find(RunFolder(path))) for path in runs]
    pictures = [*_roofline(folder, analysed, profile), *_pictures(analysed)]
    made = _page(folder, analysed, profile, pictures)
    write_atomic(folder / PAGE, page.render(made))
    sentences = _shortfalls(analysed) if analysed else ["No run was measured."]
    if console is not None:
        page.show(made, console)
    return RunOutcome(ok=not sentences, sentences=sentences)


def _page(folder: Path, runs: Sequence[Run], profile: MachineProfile, pictures: Sequence[Picture]) -> Page:
    """The page of a machine: its table, and sentences in the order that a reader needs."""
    results = _of_runs(runs, lambda report: report.headlines)  # only on the page: the terminal has the table
    normal = _of_runs(runs, lambda report: [verdict.sentence for verdict in report.normal])
    refused = _of_runs(runs, lambda report: refusals(report.rows))
    sections = [
        Section(heading="Incomplete or failed", sentences=_shortfalls(runs), purpose=Purpose.SHORTFALL),
        Section(heading="Doubts about this profile", sentences=machine_profile.doubts(profile)),
        Section(heading="Results of the runs", sentences=results, purpose=Purpose.DETAIL),
        Section(heading="Refused by the gates", sentences=refused, definition="gates"),
        Section(heading="Not measured", sentences=_of_runs(runs, lambda report: report.left_out)),
        Section(heading="Is this normal?", sentences=normal, definition="is-this-normal"),
        Section(heading="Notes", sentences=_of_runs(runs, lambda report: report.repairs)),
    ]
    name = identity.machine_name(profile["machine"])
    return Page(
        name=name,
        heading=f"{name}: machine profile",
        headlines=headlines(profile),
        pictures=pictures,
        table=table(profile),
        brief=brief(profile),
        definition="machinejson",
        sections=[section for section in sections if section.sentences],
        links=[(_address(folder, path), f"{report.experiment} in full") for path, report in runs],
        sources=[("Machine profile", profile)],
        made_from="machine.json and the runs that it links to",
    )


def _address(folder: Path, run: Path) -> str:
    """The URL of a run's page, relative to the machine's page."""
    relative = os.path.relpath(run.resolve() / "report.html", folder.resolve())
    return urllib.parse.quote(Path(relative).as_posix())


def _of_runs(runs: Sequence[Run], say: Callable[[RunReport], Sequence[str]]) -> list[str]:
    """The sentences of all runs, each after its experiment's name."""
    return [f"{report.experiment}: {sentence}" for _, report in runs for sentence in say(report)]


def _shortfalls(runs: Sequence[Run]) -> list[str]:
    """What is incomplete or failed in any of the runs."""
    return _of_runs(runs, RunReport.shortfalls)


def _roofline(folder: Path, runs: Sequence[Run], profile: MachineProfile) -> list[Picture]:
    """The roofline: every kernel of all runs under the profile's ceilings."""
    reports = [report for _, report in runs]
    files, shown = pictured("roofline", lambda: under(reports, profile), roofline.draw_roofline.caption)
    canvas.write(files, folder / "figures", "roofline")
    return shown


def draw_roofline(folders: Sequence[RunFolder], profile: MachineProfile) -> Figure | None:
    """The roofline of run folders."""
    return under([run_report.find(folder) for folder in folders], profile)


def under(reports: Sequence[RunReport], profile: MachineProfile) -> Figure | None:
    spots = of_cases([row for report in reports for row in report.rows])
    title = f"{identity.machine_name(profile['machine'])}: kernels under this machine's ceilings"
    return roofline.under(spots, profile=profile, title=title, dtype="float32")


def _pictures(runs: Sequence[Run]) -> list[Picture]:
    """The figures in the runs' folders, which their own reports drew, and their drawings for a phone."""
    pictures, plots = [], build.figures()
    for view in _KEY:
        for path, report in runs:
            for figure in _SHOWN.get(view, (view,)) if report.view == view else ():
                file = path / "figures" / f"{figure}.svg"
                if file.is_file():
                    picture = build.picture(figure, file.read_bytes(), report)
                    narrow = canvas.for_phone(functools.partial(plots[figure], report))
                    name = f"{report.experiment}-{figure}"
                    pictures.append(dataclasses.replace(picture, name=name, narrow=narrow))
    return pictures


class Number(NamedTuple):
    """One number of the profile as text. interval: "" without one. by: the case or experiment that measured it."""

    what: str
    of: str
    where: str
    value: str
    interval: str
    by: str
    oversubscribed: bool = False


def numbers(profile: MachineProfile) -> Iterator[Number]:
    """Every number of the profile."""
    for peak in profile["peaks"]:
        flop = peak["quantity"] == "flop_per_s"
        shown = partial(quantities.flops, dtype=str(peak["dtype"])) if flop else quantities.per_second
        value, ends = _value(peak, "value", shown)
        how = " ".join(str(peak.get(name) or "") for name in ("op", "impl")).strip()
        size = peak.get("shape") or (f"{peak['elements']:,}" if peak.get("elements") else "")
        yield Number(
            what="matrix product" if flop else f"streaming, {peak['level']}" if peak["level"] else "streaming",
            of=str(peak["dtype"]),
            where=_cores_or_platform(peak),
            value=value,
            interval=ends,
            by=f"{how} {size}".strip(),
        )
    for launch in profile["launch"]:
        value, ends = _value(launch, "value", seconds)
        what = f"{launch['op']} program"
        yield Number(what, str(launch["impl"]), _cores_or_platform(launch), value, ends, by="dispatch")
    for link in profile["links"]:
        over = f"{devices(int(link['devices']))}{'°' if link['oversubscribed'] else ''}"
        along = f" along {link['axis']} of {link['mesh']}" if "x" in str(link.get("mesh") or "") else ""
        held_by = between(link.get("group_processes") or 1, link.get("group_hosts") or 1)
        along += f" of {held_by}" if held_by else ""
        alpha, alpha_ends = _value(link, "alpha_s", seconds)
        beta, beta_ends = _value(link, "beta_bytes_per_s", quantities.per_second)
        # In the table with its misfit, but in no headline.
        missed = f", poor fit: off by up to {100 * link['misfit']:.0f} %" if _poor(link) else ""
        value, ends = f"{alpha} + S / ({beta}){missed}", ", ".join(filter(None, (alpha_ends, beta_ends)))
        what, of, oversubscribed = str(link["op"]), str(link["dtype"]), bool(link["oversubscribed"])
        yield Number(display(what), of, over + along, value, ends, by="collectives", oversubscribed=oversubscribed)
    for copy in profile["transfers"]:
        value, ends = _value(copy, "value", quantities.per_second)
        where = f"{display(str(copy['source']))} → {display(str(copy['target']))}"
        yield Number(
            display(str(copy["op"])), quantities.payload(copy["payload_bytes"]), where, value, ends, by="transfer"
        )


def headlines(profile: MachineProfile) -> list[str]:
    """The profile in a few sentences: peaks on all cores, and collectives on the most devices with a core each."""
    sentences = []
    for platform in dict.fromkeys(peak["platform"] for peak in profile["peaks"]):
        peaks = [peak for peak in profile["peaks"] if peak["platform"] == platform]
        cores = max(peak["cores"] or 0 for peak in peaks)
        # On a CPU, the peak of fewer cores is not that of the machine.
        peaks = [peak for peak in peaks if platform != "cpu" or peak["cores"] == cores]
        flops = [
            f"{p['dtype']} {quantities.flops(p['value'], p['dtype'])}" for p in peaks if p["quantity"] == "flop_per_s"
        ]
        rates = [(p["value"], p["level"]) for p in peaks if p["quantity"] == "bytes_per_s"]
        best = {level: max(value for value, at in rates if at == level) for _, level in rates}
        known = [level for level in ("memory", "cache") if level in best]
        streams = [f"{quantities.per_second(best[level])} from {level}" for level in known]
        where = f" on {_cores_or_platform(peaks[0])}"
        sentences += [f"Matrix products{where}: {', '.join(flops)}."] if flops else []
        sentences += [f"Streaming{where}: {', '.join(streams)}."] if streams else []
    sentences += _launches(profile)
    # Devices that share a core wait for each other, so their times are not those of a link.
    links = [link for link in profile["links"] if not link["oversubscribed"]]
    count = max((link["devices"] for link in links), default=0)
    parts = [
        f"{display(link['op'])} {seconds(link['alpha_s'])} + S / ({quantities.per_second(link['beta_bytes_per_s'])})"
        for link in links
        if link["devices"] == count and not _poor(link) and "x" not in str(link.get("mesh") or "")
    ]
    return sentences + ([f"Collectives of S bytes on {devices(count)}: {'; '.join(parts)}."] if parts else [])


def _launches(profile: MachineProfile) -> list[str]:
    """A sentence for each place: "One call on 2 cores: empty program 4.19 µs in a queue, 5.85 µs waited for."."""
    ways, sentences = {"pipelined": "in a queue", "sync": "waited for"}, []
    for where in dict.fromkeys(map(_cores_or_platform, profile["launch"])):
        calls: dict[str, list[str]] = {}
        for call in profile["launch"]:
            if _cores_or_platform(call) == where:
                way = ways.get(str(call["impl"]), str(call["impl"]))
                calls.setdefault(str(call["op"]), []).append(f"{seconds(call['value'])} {way}")
        parts = [f"{op} program {', '.join(times)}" for op, times in calls.items()]
        sentences.append(f"One call on {where}: {'; '.join(parts)}.")
    return sentences


def _poor(link: LinkFit) -> bool:
    """As `AlphaBetaFit.poor`. Older profiles have no misfit."""
    return (link.get("misfit") or 0.0) >= POOR


def table(profile: MachineProfile) -> Table:
    """Every number of the profile as a table."""
    note = "Only numbers that passed every gate. Collectives: time per call for a payload of S bytes."
    if any(link["oversubscribed"] for link in profile["links"]):
        note += OVERSUBSCRIBED
    rows = [*numbers(profile)]
    return fill(_COLUMNS, rows, group=lambda number: number.what, soft=lambda number: number.oversubscribed, note=note)


def brief(profile: MachineProfile) -> Table:
    """The table for the terminal, with only the slowest and the fastest copy of each kind."""
    return table({**profile, "transfers": _ends(profile["transfers"])})


def _ends(copies: list[CopyRate]) -> list[CopyRate]:
    """The slowest and the fastest pair of each kind of copy."""
    ends = []
    for op in dict.fromkeys(copy["op"] for copy in copies):
        ranked = sorted((copy for copy in copies if copy["op"] == op), key=lambda copy: copy["value"])
        ends += ranked[:1] + ranked[1:][-1:]  # one pair is both, and is listed once
    return ends


def _cores_or_platform(entry: Peak | LaunchCost) -> str:
    if entry["platform"] != "cpu":
        return str(entry["platform"]).upper()
    return f"{entry['cores']} core{'s' if entry['cores'] != 1 else ''}"


def _value(entry: Mapping[str, Any], field: str, show: Callable[[float], str]) -> tuple[str, str]:
    """(the number, its interval) as text. The ends are the fields "lo", "hi" for "value", else FIELD_lo, FIELD_hi."""
    prefix = "" if field == "value" else f"{field}_"
    lo, hi = entry.get(f"{prefix}lo"), entry.get(f"{prefix}hi")
    return show(float(entry[field])), "" if lo is None or hi is None else f"[{show(lo)}, {show(hi)}]"
