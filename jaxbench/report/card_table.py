# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The numbers of a machine's card as a table: peaks, launch cost, links and copies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from jaxbench.analysis import quantities
from jaxbench.analysis.headline import devices, seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.report.page import Column, Line, Sheet

_HEADERS = ("what", "of", "where", "value", "95 % interval", "measured by")
Cells = tuple[str, str, str, str, str, str]


def rows(card: dict[str, Any]) -> Iterator[Cells]:
    """What `_HEADERS` say, of every number of the card."""
    for peak in card["peaks"]:
        flop = peak["quantity"] == "flop_per_s"
        what = "matrix product" if flop else f"streaming, {peak['level']}" if peak["level"] else "streaming"
        how = " ".join(str(peak.get(name) or "") for name in ("op", "impl")).strip()
        which = f"{how} {peak.get('shape') or _count(peak.get('elements'))}".strip()
        shown = partial(quantities.flops, dtype=str(peak["dtype"])) if flop else quantities.per_second
        yield what, str(peak["dtype"]), _place(peak), *_value(peak, "value", shown, ("lo", "hi")), which
    for launch in card["launch"]:
        what = f"{launch['op']} program"
        yield what, str(launch["impl"]), _place(launch), *_value(launch, "value", seconds, ("lo", "hi")), "dispatch"
    for link in card["links"]:
        over = f"{devices(int(link['devices']))}{'°' if link['oversubscribed'] else ''}"
        along = f" along {link['axis']} of {link['mesh']}" if "x" in str(link.get("mesh") or "") else ""
        alpha, alpha_ends = _value(link, "alpha_s", seconds, ("alpha_s_lo", "alpha_s_hi"))
        beta_names = ("beta_bytes_per_s_lo", "beta_bytes_per_s_hi")
        beta, beta_ends = _value(link, "beta_bytes_per_s", quantities.per_second, beta_names)
        ends = ", ".join(filter(None, (alpha_ends, beta_ends)))
        yield str(link["op"]), str(link["dtype"]), over + along, f"{alpha} + S / ({beta})", ends, "collectives"
    for copy in card["transfers"]:
        size = quantities.payload(copy["payload_bytes"])
        pair = f"{copy['source']} → {copy['target']}"
        yield str(copy["op"]), size, pair, *_value(copy, "value", quantities.per_second, ("lo", "hi")), "transfer"


def headlines(card: dict[str, Any]) -> list[str]:
    """The card in a few sentences: with all cores, and of collectives on the most devices that have a core each."""
    said = []
    for platform in dict.fromkeys(peak["platform"] for peak in card["peaks"]):
        mine = [peak for peak in card["peaks"] if peak["platform"] == platform]
        most = max(peak["cores"] or 0 for peak in mine)
        mine = [peak for peak in mine if platform != "cpu" or peak["cores"] == most]
        flops = [
            f"{p['dtype']} {quantities.flops(p['value'], p['dtype'])}" for p in mine if p["quantity"] == "flop_per_s"
        ]
        rates = [(p["value"], p["level"]) for p in mine if p["quantity"] == "bytes_per_s"]
        best = {level: max(value for value, at in rates if at == level) for _, level in rates}
        known = [level for level in ("memory", "cache") if level in best]
        streams = [f"{quantities.per_second(best[level])} from {level}" for level in known]
        where = f" on {_place(mine[0])}"
        said += [f"Matrix products{where}: {', '.join(flops)}."] if flops else []
        said += [f"Streaming{where}: {', '.join(streams)}."] if streams else []
    calls = [f"{call['op']} {call['impl']} {seconds(call['value'])}" for call in card["launch"]]
    said += [f"A call: {', '.join(calls)}."] if calls else []
    links = [link for link in card["links"] if not link["oversubscribed"]]
    most = max((link["devices"] for link in links), default=0)
    parts = [
        f"{link['op']} {seconds(link['alpha_s'])} + S / ({quantities.per_second(link['beta_bytes_per_s'])})"
        for link in links
        if link["devices"] == most and "x" not in str(link.get("mesh") or "")
    ]
    return said + ([f"Collectives of S bytes on {devices(most)}: {'; '.join(parts)}."] if parts else [])


def sheet(card: dict[str, Any]) -> Sheet:
    """The table of the page."""
    numbers = ("value", "95 % interval")
    columns = tuple(Column(name, "" if name in numbers else "text") for name in _HEADERS)
    lines, before = [], ""
    for cells in rows(card):
        lines.append(Line(cells=cells, first=cells[0] != before, soft="°" in cells[2]))
        before = cells[0]
    return Sheet(columns=columns, lines=tuple(lines), note=note(card))


def table(card: dict[str, Any]) -> Table:
    """The table of the terminal: without the interval and who measured it, and of copies only each kind's ends."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in _HEADERS[:4]:
        made.add_column(Text(name), justify="right" if name == "value" else "left", overflow="fold")
    for cells in rows({**card, "transfers": _ends(card["transfers"])}):
        made.add_row(*map(Text, cells[:4]), style="dim" if "°" in cells[2] else "")
    return made


def note(card: dict[str, Any]) -> str:
    text = "Only numbers that passed every gate. Of collectives the time of a call with a payload of S bytes."
    if any(link["oversubscribed"] for link in card["links"]):
        text += " ° more devices than cores: fake devices prove bytes and arithmetic, never speed."
    return text


def _ends(copies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind of copy the slowest and the fastest pair."""
    kept = []
    for op in dict.fromkeys(copy["op"] for copy in copies):
        mine = sorted((copy for copy in copies if copy["op"] == op), key=lambda copy: copy["value"])
        kept += mine[:1] + mine[1:][-1:]
    return kept


def _place(entry: dict[str, Any]) -> str:
    if entry["platform"] != "cpu":
        return str(entry["platform"])
    return f"{entry['cores']} core{'s' if entry['cores'] != 1 else ''}"


def _value(entry: dict[str, Any], field: str, show: Callable[[float], str], ends: tuple[str, str]) -> tuple[str, str]:
    lo, hi = (math.nan if entry.get(end) is None else float(entry[end]) for end in ends)
    value = Estimate(value=float(entry[field]), lo=lo, hi=hi)
    return show(value.value), f"[{show(lo)}, {show(hi)}]" if value.has_interval else ""


def _count(elements: Any) -> str:
    return f"{elements:,}" if isinstance(elements, int) else ""
