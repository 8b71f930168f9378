# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The quantities that claims name. Each takes the runs and the claim's arguments, and raises NotTestable without data.

A reader returns its number, and the fields for the claim's `detail`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from jaxbench.analysis import loss_sentences, scaling_laws, waterfall
from jaxbench.analysis.alpha_beta import AlphaBetaFit
from jaxbench.analysis.run_rows import Row
from jaxbench.features.comparison.claims import DIVERGED
from jaxbench.features.comparison.judge import CANNOT_TELL
from jaxbench.features.comparison.ratio import of_seeds
from jaxbench.levers import SCHEDULE
from jaxbench.report.figures import memory
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import Estimate, estimate, student
from jaxbench.suites.papers import paper
from jaxbench.suites.papers.paper import Claim, Evidence, NotTestable, arm_of, most_devices

Reading = tuple[Estimate, dict[str, Any]]
Arguments = ParamSpec("Arguments")
FAR = 256  # times the smallest batch: Goyal's 65,536 over 256
SEEDS = (0, 1, 2, 3)
STAGES = ("zero1", "zero2", "fsdp")

FUNCTIONS: dict[str, Callable[..., Reading]] = {}  # those that a claim may name


def _in_claims(function: Callable[Arguments, Reading]) -> Callable[Arguments, Reading]:
    FUNCTIONS[function.__name__] = function
    return function


def read(claim: Claim, runs: Evidence) -> tuple[Estimate, str]:
    """(the claim's number, its conditions as a clause). Raises NotTestable, or UserError if a run is damaged."""
    arguments = dict(claim.read)
    value, fields = FUNCTIONS[arguments.pop("function")](runs, **arguments)
    return value, claim.detail.format(**fields)


def exact(value: float) -> Estimate:
    """A number without noise, which is its own interval."""
    return Estimate(value=value, lo=value, hi=value)


# Scaling over devices


@_in_claims
def efficiency(runs: Evidence, run: str) -> Reading:
    """Weak-scaling efficiency on the most devices."""
    row = most_devices(runs.training(run).rows)
    return row.efficiency, {"devices": row.point.devices, "base": row.base.devices if row.base else 1}


@_in_claims
def efficiency_ratio(runs: Evidence, top: str, bottom: str) -> Reading:
    """The efficiency of a run over that of another."""
    above, below = (most_devices(runs.training(name).rows) for name in (top, bottom))
    # Two sessions share no rounds, and an efficiency is a ratio within one, so their draws are independent. One is
    # shuffled, because both were drawn with the same seed.
    shuffled = np.random.default_rng(0).permutation(below.speedup_draws)
    drawn = below.relative_devices / above.relative_devices * above.speedup_draws / shuffled
    rounds = min(above.timing.rounds, below.timing.rounds)
    value = estimate(above.efficiency.value / below.efficiency.value, drawn, rounds=rounds)
    return value, {"devices": above.point.devices}


@_in_claims
def law(runs: Evidence, run: str, name: str) -> Reading:
    """The measured speed-up on the most devices over that of a law, fitted to the same points."""
    training = runs.training(run)
    fit = next((fit for fit in training.fits if fit.law == name), None)
    if fit is None or fit.why_not:
        raise NotTestable(f"{name}'s law: {fit.why_not if fit else 'its scaling was not measured'}.")
    rows = [r for r in training.rows if r.quotable and r.speedup.known and r.point.scaling == fit.scaling]
    # The law is fitted to the same points, so the comparison is as kind to it as can be.
    top = max(rows, key=lambda row: row.point.devices)
    values = [value.value for _, _, value in fit.parameters]
    expected = float(scaling_laws.predict(name, np.array([top.relative_devices]), *values)[0])
    return top.speedup.times(1 / expected), {"devices": top.point.devices, "scaling": fit.scaling}


@_in_claims
def hidden(runs: Evidence, run: str) -> Reading:
    """The share of the collectives' time in which the devices also compute, on the most devices."""
    training = runs.training(run)
    falls = [fall for fall in training.waterfalls if fall.hidden.known]
    if not falls and training.withheld:
        raise NotTestable(loss_sentences.withheld(training.withheld)[0], CANNOT_TELL)
    if not falls:
        raise NotTestable("No communication was measured alone, which needs two devices that share no core.")
    fall = max(falls, key=lambda fall: fall.point.devices)
    return fall.hidden, {"devices": fall.point.devices, "scaling": fall.point.scaling}


# Generation


def _by_batch(runs: Evidence, run: str) -> tuple[Row, Row]:
    """The rows of one device with the largest and the smallest batch. Raises NotTestable."""
    rows = [row for row in runs.generation(run).rows if row.quotable and row.point.devices == 1]
    rows.sort(key=lambda row: row.point.global_batch)
    if len({row.point.global_batch for row in rows}) < 2:
        raise NotTestable("It needs two batches on one device, correct and with 5 rounds.")
    return rows[-1], rows[0]


@_in_claims
def token_time_by_batch(runs: Evidence, run: str) -> Reading:
    """The time of a token at the largest batch over that at the smallest, on one device."""
    many, few = _by_batch(runs, run)
    about = {"devices": 1, "few": few.point.global_batch, "many": many.point.global_batch}
    return paired_ratio.ratio(many, few), about


@_in_claims
def tokens_by_batch(runs: Evidence, run: str) -> Reading:
    """The tokens per second of a device at the largest batch over those at the smallest."""
    many, few = _by_batch(runs, run)
    about = {"devices": 1, "few": few.point.global_batch, "many": many.point.global_batch}
    return paired_ratio.ratio(few, many).times(many.point.global_batch / few.point.global_batch), about


@_in_claims
def generation_speedup(runs: Evidence, run: str) -> Reading:
    """The tokens per second of the smallest batch on the most devices over those on one."""
    rows = [row for row in runs.generation(run).rows if row.quotable and row.relative_devices > 1 and row.speedup.known]
    if not rows:
        raise NotTestable("It needs two device counts of at most as many devices as cores, correct and with 5 rounds.")
    row = max(rows, key=lambda each: (each.point.devices, -each.point.global_batch))
    return row.speedup, {"devices": row.point.devices}


# Arms of a sweep


@_in_claims
def step_ratio(runs: Evidence, run: str, top: str, bottom: str) -> Reading:
    """The step time of an arm over that of another, from the rounds that both share."""
    above, below = (arm_of(runs.group(run), name, quotable=True) for name in (top, bottom))
    return paired_ratio.ratio(above, below), {"devices": above.point.devices}


@_in_claims
def speed_ratio(runs: Evidence, run: str, top: str, bottom: str) -> Reading:
    """The examples per second of an arm over those of another, from the rounds that both share."""
    group = runs.group(run)
    above, below = (arm_of(group, name, quotable=True) for name in (top, bottom))
    return group.speedup(above, below), {"devices": group.devices}


@_in_claims
def sent_ratio(runs: Evidence, run: str, top: str, bottom: str) -> Reading:
    """The bytes sent per device and step by an arm over those of another."""
    group = runs.group(run)
    records = [arm_of(group, name).point.record for name in (top, bottom)]
    above, below = (sum(c.wire_bytes for c in r.compile_report.collectives) for r in records if r is not None)
    return exact(above / below), {"devices": group.devices}


@_in_claims
def gradient_share(runs: Evidence, run: str, part: str, whole: str) -> Reading:
    """The gradient bytes of an arm over those of another, on two devices."""
    groups = [group for group in runs.levers(run).groups if group.devices == 2]
    if not groups:
        raise NotTestable(f"The run '{run}' has no step on two devices.")
    arms: list[Row] = [arm_of(groups[0], label) for label in (whole, part)]
    # Expected bytes, which the collectives of the compiled step were checked against.
    total, some = (arm.point.record.compile_report.expected_gradient_bytes for arm in arms if arm.point.record)
    return exact((some or 0) / (total or math.nan)), {}


@_in_claims
def memory_exponent(runs: Evidence, run: str, policy: str) -> Reading:
    """The exponent of scratch memory over the number of blocks."""
    for growth in runs.levers(run).laws:
        if growth.remat == policy and growth.slope.known:
            return growth.slope, {"first": growth.sizes[0][0], "last": growth.sizes[-1][0]}
    raise NotTestable(f"The run did not compile the policy '{policy}' at several depths.")


# Pipelines


def pipelines(runs: Evidence, run: str) -> list[Row]:
    """The checked pipelines of a run with counted slots. Raises NotTestable without one."""
    rows = [row for row in runs.levers(run).rows if not row.wrong and np.isfinite(row.point.fact("busy_share"))]
    if not rows:
        raise NotTestable(f"The run '{run}' has no pipeline that passed its checks.")
    return rows


def idle(row: Row) -> float:
    """The share of idle slots in the executed schedule."""
    return 1 - row.point.fact("busy_share")


@_in_claims
def bubble_error(runs: Evidence, run: str) -> Reading:
    """The largest difference between an executed schedule's idle share and the formula."""
    rows = pipelines(runs, run)
    worst = max(
        abs(idle(row) - waterfall.idle_share(waterfall.stages(row.point), waterfall.micro_batches(row.point)))
        for row in rows
    )
    return exact(worst), {"count": len(rows)}


@_in_claims
def bubble_ratio(runs: Evidence, run: str, top: str, bottom: str) -> Reading:
    """Idle / busy slots of a schedule over idle / busy slots of another."""
    rows = {row.point.levers.get(SCHEDULE.name, SCHEDULE.default): row for row in pipelines(runs, run)}
    if not {top, bottom} <= rows.keys():
        raise NotTestable(f"The run '{run}' lacks one of the two schedules.")
    above, below = (idle(rows[name]) / (1 - idle(rows[name])) for name in (top, bottom))
    return exact(above / below), {}


@_in_claims
def several_hosts(runs: Evidence) -> Reading:
    """No run of this version can decide a claim on the placement of axes within and across hosts."""
    reason = "It needs several hosts, so that a tensor axis can lie inside one or across two; there is only one."
    raise NotTestable(reason)


# Exact numbers of compiled programs


@_in_claims
def state_error(runs: Evidence, run: str) -> Reading:
    """The largest relative error of the bytes a device holds against the formulas of ZeRO."""
    rows = [row for row in runs.training(run).rows if not row.wrong and row.point.record]
    counts = sorted({row.point.devices for row in rows})
    # With one device nothing is divided, and every formula of ZeRO is the same.
    if not {"jit_auto", *STAGES} <= {row.point.strategy for row in rows} or counts[-1] < 2:
        raise NotTestable(f"The run '{run}' lacks one of the stages, or a second device count.")
    return exact(memory.worst(rows)), {"few": counts[0], "many": counts[-1]}


@_in_claims
def volume_ratio(runs: Evidence, run: str, top: str, bottom: str) -> Reading:
    """Bytes sent per device and step by a strategy over those of another, scalars left out."""
    sent = {
        # Without scalars (no elements), such as the loss, which every strategy sends.
        row.point.strategy: sum(c.wire_bytes for c in row.point.record.compile_report.collectives if c.elements)
        for row in runs.training(run).rows
        if not row.wrong and row.point.record
    }
    if not (sent.get(bottom) and sent.get(top)):
        raise NotTestable(f"The run '{run}' lacks {bottom} or {top}.")
    return exact(sent[top] / sent[bottom]), {}


@_in_claims
def all_reduces_per_block(runs: Evidence, few: int, many: int) -> Reading:
    """All-reduces over the tensor axis per block: the difference of two depths, in which the rest cancels."""
    low, high = (_tensor_sums(runs, depth) for depth in (few, many))
    return exact((high - low) / (many - few)), {"few": few, "many": many}


def _tensor_sums(runs: Evidence, depth: int) -> int:
    """Arrays that the compiled step of a depth sums over two devices, scalars left out."""
    for row in runs.training(f"depth{depth}").rows:
        if row.point.devices == 2 and row.point.strategy == "tensor" and not row.wrong and row.point.record:
            sums = [c for c in row.point.record.compile_report.collectives if c.kind == "all-reduce"]
            return sum(c.count - c.scalars for c in sums)
    raise NotTestable(f"The step of {depth} blocks on two devices was not compiled and checked.")


# Kernels and links


@_in_claims
def roof_share(runs: Evidence, run: str) -> Reading:
    """The largest share of its roof that any kernel reached in a run after the machine profile."""
    rows = [row for row in runs.cases(run).rows if row.peak_share.known and row.point.reportable]
    if not rows:
        raise NotTestable("No kernel has a share of a measured roof: the machine's card is missing.")
    top = max(rows, key=lambda row: row.peak_share.value)
    size = top.point.shape or f"of {top.point.elements:,} numbers"
    return top.peak_share, {"count": len(rows), "kernel": f"{top.point.op} {size}"}


def all_reduce_fit(runs: Evidence, run: str) -> AlphaBetaFit:
    """The line of time over size on the most devices. Raises NotTestable without one."""
    lines = [f for f in runs.cases(run).lines if f.point.op == "all_reduce" and not f.point.oversubscribed]
    good = [fit for fit in lines if not fit.why_not and fit.point.devices > 1]
    if not good:
        raise NotTestable("No all-reduce on two devices that share no core has a line of time over size.")
    return max(good, key=lambda fit: fit.point.devices)


@_in_claims
def line_residual(runs: Evidence, run: str) -> Reading:
    """The mean absolute relative residual of the line, over payload sizes."""
    fit = all_reduce_fit(runs, run)
    return student(np.abs([r for _, r in fit.residuals])), {"name": fit.name, "count": len(fit.residuals)}


# Trainings to a target


@_in_claims
def accuracy_lost(runs: Evidence, rule: str, least: int = 2, most: int = FAR) -> Reading:
    """Accuracy at the smallest batch minus that at the largest within `least` to `most` times its size, in points, with
    Welch's 95 % interval."""
    trained = paper.trainings(runs, rule)
    accuracy, small = trained.accuracy, min(trained.accuracy)
    large = max((batch for batch in accuracy if least <= batch / small <= most), default=None)
    if large is None:
        raise NotTestable(f"No batch is {least} to {most} times the smallest, {small}.")
    # A network that has not learnt says that its learning rate is wrong, and nothing about its batch.
    for batch in (small, large):
        if count := trained.diverged[batch]:
            how = f"diverged ({100 - 100 * accuracy[batch].mean():.3g} % error): its learning rate is too high here."
            raise NotTestable(f"{count} of {len(accuracy[batch])} trainings at batch {batch} {how}", DIVERGED)
    return difference(accuracy[small], accuracy[large]).times(100), {"large": large, "small": small}


def difference(a: np.ndarray, b: np.ndarray) -> Estimate:
    """The mean of `a` less that of `b`, with Welch's 95 % interval."""
    welch = of_seeds(b, a)
    return Estimate(value=welch.log, lo=welch.log - welch.half(0.05), hi=welch.log + welch.half(0.05))


def accuracies(runs: Evidence, precision: str) -> np.ndarray:
    """(seeds,) the share of test images that each training of the precision gets right. Raises NotTestable."""
    groups = [runs.group(f"seed{seed}") for seed in SEEDS]
    values = np.array([arm_of(group, precision).point.outcome("final_accuracy") for group in groups])
    if not np.isfinite(values).all():
        raise NotTestable(f"The trainings in {precision} ended without an accuracy.")
    return values


@_in_claims
def accuracy_difference(runs: Evidence, first: str, second: str) -> Reading:
    """In points, from pairs of trainings with one seed, so that the effect of the seed cancels."""
    pairs = accuracies(runs, first) - accuracies(runs, second)
    return student(100 * pairs), {"seeds": len(SEEDS)}


def steps_to_target(runs: Evidence, rule: str) -> dict[int, np.ndarray]:
    """{batch: (seeds,)} of at least two batches. Raises NotTestable."""
    steps = paper.trainings(runs, rule).steps
    if len(steps) < 2:
        raise NotTestable("Fewer than two batches reached the target with every seed.")
    return steps


@_in_claims
def examples_at_doubling(runs: Evidence, rule: str) -> Reading:
    """Examples to the target at the second smallest batch over those at the smallest."""
    steps = steps_to_target(runs, rule)
    first, second = list(steps)[:2]
    # The ratio of geometric means, with Welch's interval of the logarithms.
    ratio = of_seeds(np.log(first * steps[first]), np.log(second * steps[second])).estimate()
    return ratio, {"batch": second, "base": first}


@_in_claims
def steps_at_largest(runs: Evidence, rule: str) -> Reading:
    """Steps at the largest batch over those at half of its size, or at the next smaller one."""
    steps = steps_to_target(runs, rule)
    before, last = list(steps)[-2:]
    if last / before < 1.9:
        raise NotTestable("The two largest batches that reach the target differ by less than a factor of two.")
    return of_seeds(np.log(steps[before]), np.log(steps[last])).estimate(), {"batch": last, "base": before}


@_in_claims
def knee_over_noise(runs: Evidence, rule: str) -> Reading:
    """The knee over the mean noise scale, on logarithms; the spread of the noise scale is small next to the knee's."""
    trained = paper.trainings(runs, rule)
    knee = trained.knee()
    if not knee.known or not len(trained.noise):
        raise NotTestable("It needs three batches that reach the target, and the gradient noise scale.")
    noise = float(np.exp(np.mean(np.log(trained.noise))))
    return knee.times(1 / noise), {"knee": knee.value, "noise": noise}
