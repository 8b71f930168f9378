# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The self-contained HTML page: one file, no request leaves it, nothing in it can run."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any

import jinja2

from jaxbench import __version__
from jaxbench.analysis.headline import percent, seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.points import Point
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.summary import gradient_bytes
from jaxbench.report import tables
from jaxbench.report.findings import Findings

RAW_ROUNDS = 2000  # rounds of raw samples the page holds at most; records.jsonl has all of them


@dataclass(frozen=True, kw_only=True)
class _Raw:
    """Raw samples of one point, as text. hidden: rounds that the page leaves out."""

    rounds: list[dict[str, str]]
    hidden: int


def render(findings: Findings, figure_svg: bytes) -> str:
    """Returns the page. Everything that comes from the run is escaped; the figure is this package's own SVG."""
    each = max(3, RAW_ROUNDS // max(1, len(findings.rows)))
    return _template().render(
        findings=findings,
        figure=_inline(figure_svg),
        unit=tables.unit(findings.rows),
        rows=[_cells(row) for row in findings.rows],
        passports=[_passport(row, each) for row in findings.rows],
        config=_pretty(findings.config),
        manifest=_pretty(findings.manifest),
        legend=tables.legend(findings.rows),
        version=__version__,
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxbench.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("template.html")


def _inline(svg: bytes) -> str:
    """The SVG element alone, without comments: matplotlib writes every text of the figure into one."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img" aria-label="scaling figure"', text, count=1)


def _cells(row: Row) -> dict[str, str]:
    point, timing = row.point, row.timing
    speedup, efficiency = row.speedup, row.efficiency
    if point.oversubscribed:  # an interval around a meaningless ratio would look like a finding
        speedup, efficiency = speedup.alone(), efficiency.alone()
    share = percent(efficiency) if efficiency.known else ""
    return {
        "strategy": point.strategy,
        "scaling": point.scaling,
        "devices": f"{point.devices}{'°' if point.oversubscribed else ''}",
        "batch": str(point.global_batch),
        "step": tables.milliseconds(timing.step_s),
        "p95": tables.milliseconds(Estimate(value=timing.step_s_p95)),
        "cv": f"{100 * timing.step_s_cv:.1f}" if timing.step_s_cv == timing.step_s_cv else "",
        "samples": str(timing.samples or ""),
        "rate": tables.throughput(timing.examples_per_s.value),
        "speedup": "1" if row.base is point else tables.ratio(speedup),
        "efficiency": "base" if row.base is point else share,
        "clock": tables.ratio(timing.clock_ratio),
        "state": tables.state(row),
    }


def _passport(row: Row, each: int) -> dict[str, Any]:
    point, record = row.point, row.point.record
    facts: list[tuple[str, str]] = []
    if record is not None:
        passport = record.passport
        phases = ("trace_s", "lower_s", "compile_s", "first_run_s")
        times = [(name[:-2].replace("_", " "), getattr(passport, name)) for name in phases]
        facts = [(name, "not told apart" if value is None else seconds(value)) for name, value in times]
        memory = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes", "peak_bytes")
        facts += [(f"{name[:-6]} memory per device", _bytes(getattr(passport, name))) for name in memory]
        facts += [
            ("parameters", f"{passport.parameters:,}"),
            ("model FLOPs per step", f"{passport.flops_per_step:.4g}"),
            ("compiler's FLOPs per step", _maybe(passport.compiler_flops_per_step)),
            ("gradient bytes reduced", f"{gradient_bytes(row):,} (closed form {passport.expected_gradient_bytes:,})"),
            ("device", f"{record.device_kind} ({record.platform}), {record.processes} process(es)"),
        ]
    return {
        "name": point.point,
        "state": tables.state(row),
        "reason": point.reason,
        "detail": point.failure.detail if point.failure is not None else "",
        "facts": facts,
        "collectives": record.passport.collectives if record is not None else (),
        "checks": record.checks if record is not None else (),
        "notes": row.notes,
        "raw": _raw(point, each),
    }


def _raw(point: Point, each: int) -> _Raw:
    shown = point.rounds[:each]
    rounds = [
        {
            "round": str(r.round),
            "steps": str(r.steps),
            "block": _milliseconds(r.block_s),
            "double": _milliseconds(r.double_block_s),
            "warmup": _milliseconds(r.warmup_block_s),
        }
        for r in shown
    ]
    return _Raw(rounds=rounds, hidden=len(point.rounds) - len(shown))


def _milliseconds(values: tuple[float, ...]) -> str:
    return ", ".join(f"{1e3 * v:.4g}" for v in values)


def _bytes(value: int) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {unit} ({value:,} bytes)"
    return f"{value:,} bytes"


def _maybe(value: float | None) -> str:
    return "not reported" if value is None else f"{value:.4g}"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
