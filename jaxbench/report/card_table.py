# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The numbers of a machine profile as a table: peaks, launch cost, links and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from jaxbench.analysis import quantities
from jaxbench.analysis.alpha_beta import POOR
from jaxbench.analysis.cases import between
from jaxbench.analysis.headline import devices, seconds
from jaxbench.report.findings import OVERSUBSCRIBED
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill


class Number(NamedTuple):
    """One number of the profile as text. interval: "" without one. by: the case or experiment that measured it."""

    what: str
    of: str
    where: str
    value: str
    interval: str
    by: str
    oversubscribed: bool = False


_COLUMNS = (
    Column("what", "what", kind=TEXT, terminal=ALWAYS, definition="machinejson"),
    Column("of", "of", kind=TEXT, terminal=ALWAYS),
    Column("where", "where", kind=TEXT, terminal=ALWAYS),
    Column("value", "value", terminal=ALWAYS, definition="machinejson"),
    Column("95 % interval", "interval", definition="intervals"),
    Column("measured by", "by", kind=TEXT),
)


def rows(card: dict[str, Any]) -> Iterator[Number]:
    """Every number of the profile."""
    for peak in card["peaks"]:
        flop = peak["quantity"] == "flop_per_s"
        shown = partial(quantities.flops, dtype=str(peak["dtype"])) if flop else quantities.per_second
        value, ends = _value(peak, "value", shown)
        how = " ".join(str(peak.get(name) or "") for name in ("op", "impl")).strip()
        yield Number(
            what="matrix product" if flop else f"streaming, {peak['level']}" if peak["level"] else "streaming",
            of=str(peak["dtype"]), where=_place(peak), value=value, interval=ends,
            by=f"{how} {peak.get('shape') or _count(peak.get('elements'))}".strip(),
        )  # fmt: skip
    for launch in card["launch"]:
        value, ends = _value(launch, "value", seconds)
        what = f"{launch['op']} program"
        yield Number(what, str(launch["impl"]), _place(launch), value, ends, by="dispatch")
    for link in card["links"]:
        over = f"{devices(int(link['devices']))}{'°' if link['oversubscribed'] else ''}"
        along = f" along {link['axis']} of {link['mesh']}" if "x" in str(link.get("mesh") or "") else ""
        held_by = between(int(link.get("group_processes", 1)), int(link.get("group_hosts", 1)))
        along += f" of {held_by}" if held_by else ""
        alpha, alpha_ends = _value(link, "alpha_s", seconds)
        beta, beta_ends = _value(link, "beta_bytes_per_s", quantities.per_second)
        missed = f", poor fit: off by up to {100 * link['misfit']:.0f} %" if _poor(link) else ""
        value, ends = f"{alpha} + S / ({beta}){missed}", ", ".join(filter(None, (alpha_ends, beta_ends)))
        what, of, oversubscribed = str(link["op"]), str(link["dtype"]), bool(link["oversubscribed"])
        yield Number(what, of, over + along, value, ends, by="collectives", oversubscribed=oversubscribed)
    for copy in card["transfers"]:
        value, ends = _value(copy, "value", quantities.per_second)
        where = f"{copy['source']} → {copy['target']}"
        yield Number(str(copy["op"]), quantities.payload(copy["payload_bytes"]), where, value, ends, by="transfer")


def headlines(card: dict[str, Any]) -> list[str]:
    """The profile in a few sentences: peaks on all cores, and collectives on the most devices with a core each."""
    sentences = []
    for platform in dict.fromkeys(peak["platform"] for peak in card["peaks"]):
        peaks = [peak for peak in card["peaks"] if peak["platform"] == platform]
        cores = max(peak["cores"] or 0 for peak in peaks)
        peaks = [peak for peak in peaks if platform != "cpu" or peak["cores"] == cores]
        flops = [
            f"{p['dtype']} {quantities.flops(p['value'], p['dtype'])}" for p in peaks if p["quantity"] == "flop_per_s"
        ]
        rates = [(p["value"], p["level"]) for p in peaks if p["quantity"] == "bytes_per_s"]
        best = {level: max(value for value, at in rates if at == level) for _, level in rates}
        known = [level for level in ("memory", "cache") if level in best]
        streams = [f"{quantities.per_second(best[level])} from {level}" for level in known]
        where = f" on {_place(peaks[0])}"
        sentences += [f"Matrix products{where}: {', '.join(flops)}."] if flops else []
        sentences += [f"Streaming{where}: {', '.join(streams)}."] if streams else []
    calls = [f"{call['op']} {call['impl']} {seconds(call['value'])}" for call in card["launch"]]
    sentences += [f"One call: {', '.join(calls)}."] if calls else []
    links = [link for link in card["links"] if not link["oversubscribed"]]
    count = max((link["devices"] for link in links), default=0)
    parts = [
        f"{link['op']} {seconds(link['alpha_s'])} + S / ({quantities.per_second(link['beta_bytes_per_s'])})"
        for link in links
        if link["devices"] == count and not _poor(link) and "x" not in str(link.get("mesh") or "")
    ]
    return sentences + ([f"Collectives of S bytes on {devices(count)}: {'; '.join(parts)}."] if parts else [])


def _poor(link: Mapping[str, Any]) -> bool:
    """As `AlphaBetaFit.poor`. Older profiles have no misfit."""
    return (link.get("misfit") or 0.0) >= POOR


def machine_name(machine: Mapping[str, Any]) -> str:
    """The accelerator or the processor, with the number of devices or cores."""
    if machine.get("platform") != "cpu":
        return f"{machine.get('devices')} x {machine.get('device_kind')}"
    cores = machine.get("cores")
    return f"{machine.get('cpu_model') or 'CPU'}, {cores} core{'s' if cores != 1 else ''}"


def table(card: dict[str, Any]) -> Table:
    """Every number of the profile as a table."""
    note = "Only numbers that passed every gate. Collectives: time per call for a payload of S bytes."
    if any(link["oversubscribed"] for link in card["links"]):
        note += OVERSUBSCRIBED
    return fill(
        _COLUMNS, rows(card), group=lambda number: number.what, soft=lambda number: number.oversubscribed, note=note
    )


def brief(card: dict[str, Any]) -> Table:
    """The table for the terminal, with only the slowest and the fastest copy of each kind."""
    return table({**card, "transfers": _ends(card["transfers"])})


def _ends(copies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slowest and the fastest pair of each kind of copy."""
    ends = []
    for op in dict.fromkeys(copy["op"] for copy in copies):
        ranked = sorted((copy for copy in copies if copy["op"] == op), key=lambda copy: copy["value"])
        ends += ranked[:1] + ranked[1:][-1:]
    return ends


def _place(entry: dict[str, Any]) -> str:
    if entry["platform"] != "cpu":
        return str(entry["platform"])
    return f"{entry['cores']} core{'s' if entry['cores'] != 1 else ''}"


def _value(entry: dict[str, Any], field: str, show: Callable[[float], str]) -> tuple[str, str]:
    """(the number, its interval) as text. The ends are the fields "lo", "hi" for "value", else FIELD_lo, FIELD_hi."""
    prefix = "" if field == "value" else f"{field}_"
    lo, hi = entry.get(f"{prefix}lo"), entry.get(f"{prefix}hi")
    return show(float(entry[field])), "" if lo is None or hi is None else f"[{show(lo)}, {show(hi)}]"


def _count(elements: Any) -> str:
    return f"{elements:,}" if isinstance(elements, int) else ""
