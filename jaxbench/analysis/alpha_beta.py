# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""t(S) = alpha + S / beta: the latency and the bandwidth of one collective or one link (Hockney 1994).

The fit minimises the squares of ln(line / t). So every size has the same weight, and a line at twice the measured time
is as far off as a line at half of it. Two alternatives are worse. With (line - t), the largest payload alone decides,
and alpha is noise. With (line - t) / t, a line below the times has an error of at most 1, which biases the fit low.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.analysis.points import MeasuredPoint, hosts_of
from jaxbench.analysis.quantities import interval, payload, per_second, seconds
from jaxbench.analysis.run_rows import Row, bus_factor
from jaxbench.core.schema import CaseFields, Collective
from jaxbench.digits import digits
from jaxbench.records.machine_profile import LinkFit, MachineProfile
from jaxbench.records.manifest import Surroundings
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate, estimate

MIN_SIZES = 3  # two sizes lie on a line whatever they are
SEARCHES = 40  # each keeps two thirds of the interval of log-odds, so 0.5 units shrink by a factor of 1e-7
# Why there is no fit.
WHY_NOT = {
    "refused": "every size was refused ({reason})",
    "none": "no size is complete, correct and not refused",
    "few": "{count} payload size{several}{of}, and a fit needs {needed}",
    "of": " of {count} are complete, correct and not refused",
    "flat": "no bandwidth term: time does not grow with size",
}
NO_FIT = "No fit of time against size: {names}: {why}."
POOR = 0.25  # with at least this misfit, the line does not describe the times

# XLA's names of collectives, and the names in a machine profile.
_OPS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-permute": "ppermute",
    "collective-broadcast": "broadcast",
}


@dataclass(frozen=True, kw_only=True)
class AlphaBetaFit:
    """The line of one collective in one group of devices, or of one transfer; or the reason why there is none."""

    point: MeasuredPoint  # of one of its sizes
    alpha_s: Estimate = UNKNOWN  # the time that does not depend on the size
    # Payload bytes per second of the rest; for a collective this is algbw, not busbw. It has no interval if the time of
    # some bootstrap samples does not grow with the size, because the upper end is unbounded.
    beta_bytes_per_s: Estimate = UNKNOWN
    half_bytes: Estimate = UNKNOWN  # alpha x beta, the payload at which both terms are equal (Hockney's n_1/2)
    bus_factor: float = math.nan  # busbw / algbw of the group; NaN for transfers and for one device
    misfit: float = math.nan  # the largest absolute residual
    residuals: tuple[tuple[int, float], ...] = ()  # (payload_bytes, (measured - line) / measured)
    why_not: str = ""  # why there is no fit, as a clause

    @property
    def poor(self) -> bool:
        """Whether the line misses a time by so much that alpha and beta are meaningless."""
        return self.misfit >= POOR

    @property
    def name(self) -> str:
        """For users: "all_reduce float32 on 4 devices along x of 2x4", "device_to_host float32 cpu:0->host"."""
        p = self.point
        return f"{p.op} {p.dtype} {f'{p.source}->{p.target}' if p.source or p.target else f'on {p.group}'}"

    def seconds_at(self, payload_bytes: np.ndarray) -> np.ndarray:
        """The fitted seconds at these payloads, for figures. NaN without a fit."""
        return self.alpha_s.value + payload_bytes / self.beta_bytes_per_s.value


def fit_all(rows: list[Row]) -> list[AlphaBetaFit]:
    """One fit for each collective in each group of devices and for each transfer, in the order of the rows.

    Transfers of one size only are left out: they serve to compare pairs of devices.
    """
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.point.family in ("collective", "transfer"):
            groups.setdefault(group_of(row.point), []).append(row)
    return [_fit(g) for g in groups.values() if len(g) > 1 or g[0].point.family == "collective"]


def fitted(rows: Sequence[Row], fits: Sequence[AlphaBetaFit]) -> list[Row]:
    """The rows with alpha and beta of the line through their sizes."""
    lines = {group_of(fit.point): (fit.alpha_s, fit.beta_bytes_per_s) for fit in fits if not fit.why_not}
    of_row = [lines.get(group_of(row.point), (UNKNOWN, UNKNOWN)) if row.point.payload_bytes else None for row in rows]
    return [
        dataclasses.replace(row, alpha_s=line[0], beta_bytes_per_s=line[1]) if line is not None else row
        for row, line in zip(rows, of_row, strict=True)
    ]


def group_of(point: CaseFields) -> tuple[object, ...]:
    """The key that all sizes of one collective in one group of devices, or of one transfer, share."""
    return (point.op, point.dtype, point.devices, point.mesh, point.axis, point.source, point.target)


def _fit(group: list[Row]) -> AlphaBetaFit:
    """The fit of one group of rows, or why there is none."""
    p = group[0].point
    good = sorted((row for row in group if usable(row)), key=lambda row: row.point.payload_bytes or 0)
    sizes = len({row.point.payload_bytes for row in good})
    factor = bus_factor(p.op, p.devices) if p.family == "collective" else None
    fit = AlphaBetaFit(point=p, bus_factor=math.nan if factor is None else factor)
    if not good:
        every = WHY_NOT["refused"].format(reason=group[0].gate_reason) * all(row.gate == "refused" for row in group)
        return dataclasses.replace(fit, why_not=every or WHY_NOT["none"])
    if sizes < MIN_SIZES:
        of = "" if len(good) == len(group) else WHY_NOT["of"].format(count=len(group))
        why = WHY_NOT["few"].format(count=sizes, several="s" * (sizes > 1), of=of, needed=MIN_SIZES)
        return dataclasses.replace(fit, why_not=why)
    return _solved(fit, good)


def usable(row: Row) -> bool:
    """Whether the row is complete, correct, timed and not refused. Oversubscribed groups are fitted, too; their
    sentences say so."""
    point = row.point
    measured = row.timing.step_s.known and bool(point.payload_bytes)
    return measured and point.status == "ok" and point.check_ok is True and row.gate != "refused"


def _solved(fit: AlphaBetaFit, rows: list[Row]) -> AlphaBetaFit:
    """Adds alpha, beta and residuals to `fit`, with intervals from refitted bootstrap samples."""
    sizes = np.array([row.point.payload_bytes for row in rows], dtype=np.float64)
    times = np.array([row.timing.step_s.value for row in rows])
    ((alpha, inverse),) = solve(sizes, times[None])
    residuals = 1 - (alpha + sizes * inverse) / times
    if not inverse > 0:
        return dataclasses.replace(fit, why_not=WHY_NOT["flat"])
    # All sizes are drawn together, so that a slow round is slow for all of them, as it was measured; each draw is
    # refitted.
    draws = np.stack([row.timing.step_draws for row in rows], axis=1)
    refits = solve(sizes, draws[np.isfinite(draws).all(axis=1)])
    rounds = min(row.timing.rounds for row in rows)
    with np.errstate(divide="ignore"):  # a sample that does not grow with the size has 1/beta = 0
        halves = refits[:, 0] / refits[:, 1]
    return dataclasses.replace(
        fit,
        alpha_s=estimate(float(alpha), refits[:, 0], rounds=rounds),
        beta_bytes_per_s=estimate(float(inverse), refits[:, 1], rounds=rounds).under(1.0),
        half_bytes=_open_ended(alpha / inverse, halves, rounds=rounds),
        misfit=float(np.abs(residuals).max()),
        residuals=tuple(zip(sizes.astype(int).tolist(), residuals.tolist(), strict=True)),
    )


def _open_ended(value: float, draws: np.ndarray, *, rounds: int) -> Estimate:
    """As `estimate`, but infinite draws count. If the upper end of the interval is infinite, there is no interval."""
    finite = estimate(float(value), np.minimum(draws, np.finfo(np.float64).max), rounds=rounds)
    return finite if finite.hi < 1e300 else finite.alone()


def solve(sizes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Least squares of ln(line / t) with alpha >= 0 and 1/beta >= 0, for all draws at once.

    The shape of the line depends on one number: the share of alpha in the time of the largest size. For a given share,
    the best scale is the geometric mean of t / shape. So the search has one dimension: first on a grid of the share's
    log-odds, including shares 0 and 1, then between the neighbours of the best grid point.

    Args:
      sizes: (sizes,) bytes, not all the same.
      times: (draws, sizes) seconds, all > 0.

    Returns:
      (draws, 2): alpha in seconds, 1/beta in seconds per byte.
    """
    # Sizes relative to the largest, so that both terms have the same scale whatever the units are.
    unit = sizes.max()
    logs = np.log(times)

    def distances(odds: np.ndarray) -> np.ndarray:
        """(draws, sizes): ln(t / shape of the line). odds: (draws,), or (1,) for all draws."""
        share = special.expit(odds)[:, None]
        return logs - np.log(share + special.expit(-odds)[:, None] * (sizes / unit))

    # The grid finds the region of the minimum. Its infinite ends are the two pure lines, which no finite odds reach.
    # Log-odds of shares from 4e-11 to 1 - 2e-8.
    grid = np.concatenate([[-np.inf], np.arange(-24, 18, 0.25), [np.inf]])
    best = np.stack([distances(odds[None]).var(axis=1) for odds in grid]).argmin(axis=0)
    low, high = (grid[np.clip(best + step, 1, len(grid) - 2)] for step in (-1, 1))
    # Ternary search: the variance has one minimum between the neighbours of the best grid point.
    for _ in range(SEARCHES):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        lower = distances(left).var(axis=1) <= distances(right).var(axis=1)
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    odds = np.where(np.isinf(grid[best]), grid[best], (low + high) / 2)
    factor = np.exp(distances(odds).mean(axis=1))
    return np.stack([factor * special.expit(odds), factor * special.expit(-odds) / unit], axis=1)


def sentences(fits: list[AlphaBetaFit]) -> list[str]:
    """One sentence per fit. Groups without a fit for the same reason share a sentence."""
    fitted, missing = [], dict[str, list[str]]()
    for fit in fits:
        if fit.why_not:
            missing.setdefault(fit.why_not, []).append(fit.name)
        else:
            fitted.append(_sentence(fit))
    return fitted + [NO_FIT.format(names=", ".join(names), why=why) for why, names in missing.items()]


def _sentence(fit: AlphaBetaFit) -> str:
    """The line, its largest residual, and a warning if the line does not describe the times."""
    alpha, beta = interval(fit.alpha_s, seconds), interval(fit.beta_bytes_per_s, per_second)
    size, residual = max(fit.residuals, key=lambda pair: abs(pair[1]))
    text = f"{fit.name}: t(S) = {alpha} + S / ({beta})"
    if fit.alpha_s.value > 0:
        text += f", both terms equal at {payload(fit.half_bytes.value)}"
    side = "below" if residual > 0 else "above"
    most = digits(100 * abs(residual), 2)
    text += f"; residuals of at most {most} % (the line is {side} the time at {payload(size)})"
    if fit.poor:
        largest, off = fit.residuals[-1]
        rate = largest * (1 - off) / fit.seconds_at(np.array(largest))
        text += f": the line does not describe these times, and beta is no bandwidth; {payload(largest)} went at "
        text += per_second(float(rate))
    elif not fit.beta_bytes_per_s.has_interval and fit.alpha_s.has_interval:
        text += "; some bootstrap samples do not grow with size, so the bandwidth has no upper limit"
    if fit.point.oversubscribed:
        text += " (oversubscribed: with more devices than cores, this does not describe a link)"
    return f"{text}."


def communication_s(
    point: MeasuredPoint, profile: MachineProfile | None, workers: Mapping[str, Surroundings] | None = None
) -> float:
    """The seconds of all collectives of one step, one after another; NaN if the profile does not have one of them.

    It is the sum of count x alpha + wire bytes / bus bandwidth (docs/metrics, Communication). profile: the machine
    profile. workers: from the manifest, with the hosts of a point's processes.
    """
    if point.record is None or profile is None:
        return math.nan
    record, hosts = point.record, hosts_of(point, workers or {})
    spread = record.processes, hosts
    return sum((collective_s(one, record.devices, profile, *spread) for one in record.compile_report.collectives), 0.0)


def collective_s(
    collective: Collective, devices: int, profile: MachineProfile, processes: int = 1, hosts: int = 1
) -> float:
    """The seconds of all collectives of one kind, for these numbers of devices, processes and hosts. NaN if the profile
    does not have that kind and group."""
    group = collective.group or devices
    if group == 1 or not collective.bytes:
        return 0.0
    if processes > 1 and group < devices:
        return math.nan  # the record does not show which processes such a group spans
    link = _whole_mesh_link(_OPS.get(collective.kind, ""), (group, processes, hosts), profile)
    if link is None or not (collective.wire_bytes and link["bus_bytes_per_s"]):
        return math.nan
    return float(collective.count * link["alpha_s"] + collective.wire_bytes / link["bus_bytes_per_s"])


def _whole_mesh_link(op: str, group: tuple[int, int, int], profile: MachineProfile) -> LinkFit | None:
    """The profile's link over a whole mesh of (devices, processes, hosts); float32 if that was measured."""
    whole = [link for link in profile["links"] if link["op"] == op and link_group(link) == group]
    # Links along one axis of a grid are left out: the other groups of that axis communicate at the same time.
    whole = [link for link in whole if "x" not in str(link.get("mesh", "")) and link.get("bus_bytes_per_s")]
    return min(whole, key=lambda link: link["dtype"] != "float32", default=None)


def link_group(link: LinkFit) -> tuple[int, int, int]:
    """(devices, processes, hosts) of a link. Older profiles were measured in one process."""
    return link["devices"], link.get("group_processes", 1) or 1, link.get("group_hosts", 1) or 1
