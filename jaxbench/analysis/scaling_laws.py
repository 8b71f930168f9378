# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Scaling laws fitted to quotable points, with confidence intervals from refitting every bootstrap sample.

    Amdahl 1967     S(n) = 1 / (s + (1 - s)/n)            strong    s: the serial share of the work
    Gustafson 1988  S(n) = n - s (n - 1)                  weak      s: the serial share of the time
    Gunther 1993    S(n) = n / (1 + a (n-1) + b n (n-1))  strong    a: contention, b: coherency (the USL)

n counts devices in units of the base's. Each law is fitted by bounded least squares in the form n/S or S/n, which is
linear in its parameters. In that form the error is about the same relative timing error at every n. In S, the largest
device counts alone would decide.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from jaxbench.analysis.quantities import interval
from jaxbench.analysis.run_rows import Row
from jaxbench.digits import digits
from jaxbench.statistics.bootstrap import Estimate, estimate

# Enough for percentiles at 2.5 and 97.5 %, and each is a solution of a least-squares problem.
REFITS = 400
# Why a law is not fitted.
WHY_NOT = {
    "few": "{count} valid device {noun}{shared}, and {law} needs {needed}",
    "in the same rounds": " measured in the same rounds as their base",
    "base": "its base {point} is not a valid point",
    "failed": "least squares did not converge",
    "bound": "{parameters} is at its bound, so this law does not describe the run",
}
EXACT = 1e-6  # a misfit below this is rounding: data of perfect scaling are at a bound, but the law describes them


@dataclass(frozen=True, kw_only=True)
class _Law:
    scaling: str  # that it describes
    parameters: tuple[tuple[str, str], ...]  # (symbol, meaning)
    counts: int  # how many distinct device counts it needs, including the base
    upper: float  # bound of each parameter: a share is at most 1
    linear: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # (n, S) -> (matrix, target)
    speedup: Callable[..., np.ndarray]  # (n, *parameters) -> S


_LAWS = {
    "Amdahl": _Law(  # n/S = 1 + s (n - 1)
        scaling="strong",
        parameters=(("s", "serial share"),),
        counts=3,
        upper=1.0,
        linear=lambda n, speedup: ((n - 1)[:, None], n / speedup - 1),
        speedup=lambda n, s: 1 / (s + (1 - s) / n),
    ),
    "Gustafson": _Law(  # S/n = 1 - s (1 - 1/n)
        scaling="weak",
        parameters=(("s", "serial share"),),
        counts=3,
        upper=1.0,
        linear=lambda n, speedup: ((1 - 1 / n)[:, None], 1 - speedup / n),
        speedup=lambda n, s: n - s * (n - 1),
    ),
    "USL": _Law(  # n/S = 1 + a (n - 1) + b n (n - 1)
        scaling="strong",
        parameters=(("a", "contention"), ("b", "coherency")),
        counts=4,
        upper=np.inf,
        linear=lambda n, speedup: (np.stack([n - 1, n * (n - 1)], axis=1), n / speedup - 1),
        speedup=lambda n, a, b: n / (1 + a * (n - 1) + b * n * (n - 1)),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One law fitted to one strategy's points, or the reason why there is no fit."""

    law: str
    strategy: str
    scaling: str
    devices: tuple[int, ...]
    parameters: tuple[tuple[str, str, Estimate], ...] = ()  # (symbol, meaning, value with interval)
    misfit: float = float("nan")  # the largest relative distance between a measured speed-up and the law's
    why_not: str = ""  # why there is no fit, as a clause


def sentences(fits: list[Fit]) -> list[str]:
    """One sentence per fit. Laws without a fit for the same reason share a sentence."""
    lines, missing = [], dict[tuple[str, str, str], list[str]]()  # strategies by (law, scaling, reason)
    for fit in fits:
        if fit.why_not:
            missing.setdefault((fit.law, fit.scaling, fit.why_not), []).append(fit.strategy)
            continue
        shown = [f"{meaning} {symbol} = {interval(value, digits)}" for symbol, meaning, value in fit.parameters]
        counts = ", ".join(map(str, fit.devices))
        lines.append(
            f"{fit.law}, {fit.strategy} {fit.scaling}: {', '.join(shown)}; fitted to {counts} devices, "
            f"largest residual {100 * fit.misfit:.1f} %."
        )
    for (law, scaling, why), strategies in missing.items():
        lines.append(f"{law}, {scaling}: no fit for {', '.join(strategies)}, {why}.")
    return lines


def fit_all(rows: list[Row]) -> list[Fit]:
    """Every law for every strategy that was planned with the law's scaling, in the order of the rows."""
    families = dict.fromkeys((r.point.strategy, r.point.scaling) for r in rows if r.point.status != "unsupported")
    return [
        _fit(name, strategy, [r for r in rows if (r.point.strategy, r.point.scaling) == (strategy, scaling)])
        for (strategy, scaling), name in itertools.product(families, _LAWS)
        if _LAWS[name].scaling == scaling
    ]


def _fit(name: str, strategy: str, family: list[Row]) -> Fit:
    """The fit of one law to one family of rows, or why there is none."""
    law = _LAWS[name]
    known = sorted((r for r in family if r.quotable and r.speedup.known), key=lambda r: r.point.devices)
    # Points without shared rounds carry the drift between sessions, which a law would explain as contention.
    valid = [r for r in known if r.paired]
    devices = tuple(dict.fromkeys(r.point.devices for r in valid))
    base = next((r.base for r in family if r.base is not None), None)  # all of a family have the same one
    fit = Fit(law=name, strategy=strategy, scaling=law.scaling, devices=devices)
    # With one count for each parameter and the base, a law passes through every point and says nothing.
    if len(devices) < law.counts:
        noun = "count" if len(devices) == 1 else "counts"
        shared = "" if len(valid) == len(known) else WHY_NOT["in the same rounds"]
        why = WHY_NOT["few"].format(count=len(devices), noun=noun, shared=shared, law=name, needed=law.counts)
        return dataclasses.replace(fit, why_not=why)
    if base is not None and not base.reportable:
        return dataclasses.replace(fit, why_not=WHY_NOT["base"].format(point=base.point))
    n = np.array([r.relative_devices for r in valid])
    measured = np.array([r.speedup.value for r in valid])
    best = _solve(law, n, measured)
    if not np.isfinite(best).all():
        return dataclasses.replace(fit, why_not=WHY_NOT["failed"])
    # The same bootstrap sample at every count, so the correlation between points reaches the parameters.
    draws = np.stack([r.speedup_draws for r in valid], axis=1)[:REFITS]
    refits = np.array([_solve(law, n, draw) for draw in draws if np.isfinite(draw).all()]).reshape(-1, len(best))
    rounds = min(r.timing.rounds for r in valid)
    values = [estimate(float(value), refits[:, i], rounds=rounds) for i, value in enumerate(best)]
    misfit = float(np.max(np.abs(law.speedup(n, *best) / measured - 1)))
    parameters = tuple((*names, value) for names, value in zip(law.parameters, values, strict=True))
    if misfit > EXACT and all(_held(value, law.upper) for value in values):
        fixed = ", ".join(f"{symbol} = {value.value:.3g}" for symbol, _, value in parameters)
        return dataclasses.replace(fit, misfit=misfit, why_not=WHY_NOT["bound"].format(parameters=fixed))
    return dataclasses.replace(fit, misfit=misfit, parameters=parameters)


def _held(value: Estimate, upper: float) -> bool:
    """Whether the bounds alone decide: the value and its whole interval are at a bound."""
    ends = (value.value, value.lo, value.hi) if value.has_interval else (value.value,)
    return all(end <= 0 for end in ends) or all(end >= upper for end in ends)


def _solve(law: _Law, n: np.ndarray, speedup: np.ndarray) -> np.ndarray:
    """Least squares with every parameter in [0, upper]. For one parameter, that is the clipped unbounded optimum.

    NaN if the solver does not converge.
    """
    matrix, target = law.linear(n, speedup)
    try:
        solution, _ = optimize.nnls(matrix, target)
    except RuntimeError:  # too many iterations
        return np.full(matrix.shape[1], np.nan)
    return np.minimum(solution, law.upper)  # exact for one parameter, and laws with two have no upper bound


def predict(law: str, n: np.ndarray, *parameters: float) -> np.ndarray:
    """The speed-up that a law gives at `n` devices, in units of the base's. n: any shape; returns the same shape."""
    return _LAWS[law].speedup(n, *parameters)
