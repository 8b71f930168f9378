# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The timing engine with a fake clock: the time of a block is the time on the clock and nothing else."""

import jax
import jax.numpy as jnp
import pytest

from jaxbench.core.clock import Timer
from jaxbench.machine.cores import LoadCounters


class FakeMachine:
    """A step costs `step_s`, a fence `fence_s`; the first `slow` steps cost ten times as much."""

    def __init__(self, step_s=0.25, fence_s=0.0, slow=0):
        self.now, self.step_s, self.fence_s, self.slow, self.steps = 0.0, step_s, fence_s, slow, 0

    def clock(self):
        return self.now

    def step(self, state, batch):
        self.steps += 1
        self.now += self.step_s * (10 if self.steps <= self.slow else 1)
        return state + 1, None

    def fence(self, value):
        self.now += self.fence_s

    def timer(self, **options):
        return Timer(clock=self.clock, fence=self.fence, **options)


def test_blocks_chain_the_state_and_pay_one_fence_which_the_slope_cancels():
    machine = FakeMachine(fence_s=0.5)
    assert machine.timer().block(machine.step, 0, None, 4) == (1.5, 4)
    measured = machine.timer(blocks=3).round(machine.step, 0, None, 4)
    assert measured.block_s == (1.5, 1.5, 1.5)
    assert measured.double_block_s == (2.5, 2.5, 2.5)
    slopes = [(d - b) / 4 for b, d in zip(measured.block_s, measured.double_block_s, strict=True)]
    assert slopes == [0.25, 0.25, 0.25]


def test_warm_up_lasts_until_two_blocks_agree_and_one_that_never_settles_is_said():
    machine = FakeMachine(slow=4)
    measured = machine.timer().round(machine.step, 0, None, 2)
    assert measured.warmup_block_s == (5.0, 5.0)  # agree, though both slow: the limits of any warm-up rule
    machine = FakeMachine(slow=3)
    measured = machine.timer().round(machine.step, 0, None, 2)
    assert measured.warmup_block_s == (5.0, 2.75, 0.5, 0.5)
    assert measured.settled
    machine = FakeMachine()
    original = machine.step

    def drifting(state, batch):
        machine.step_s *= 1.5
        return original(state, batch)

    measured = machine.timer(warmup_blocks=4).round(drifting, 0, None, 1)
    assert len(measured.warmup_block_s) == 4
    assert not measured.settled


def test_a_later_visit_is_half_a_block_to_warm_up_and_one_that_is_timed():
    machine = FakeMachine(fence_s=0.5)
    measured, _ = machine.timer().round_and_state(machine.step, 0, None, 4, repeated=True, double=False)
    assert (measured.warmup_block_s, measured.block_s, measured.double_block_s) == ((1.0,), (1.5,), ())
    assert measured.settled and measured.warmup_steps == 2 and len(measured.cpu_s) == 1
    measured, _ = machine.timer(blocks=2).round_and_state(machine.step, 0, None, 4, repeated=True)
    assert len(measured.warmup_block_s) == 1
    assert measured.block_s == (1.5, 1.5) and measured.double_block_s == (2.5, 2.5)


@pytest.mark.parametrize(
    ("step_s", "least_s", "steps"), [(0.25, 1.0, 4), (2.0, 1.0, 1), (0.3, 1.0, 4), (1e-6, 1, 1024)]
)
def test_block_length(step_s, least_s, steps):
    machine = FakeMachine(step_s=step_s)
    assert machine.timer().steps_per_block(machine.step, 0, None, least_s)[0] == steps


def test_an_interrupted_block_is_not_taken_for_a_long_one():
    machine = FakeMachine(step_s=0.25)
    original = machine.step

    def interrupted_once(state, batch):
        machine.step_s = 0.25 if state else 5.0
        return original(state, batch)

    assert machine.timer().steps_per_block(interrupted_once, 0, None, 1.0)[0] == 4


def test_a_retrace_in_the_timed_region_is_counted():
    same = jax.jit(lambda state, batch: (state + batch, None))
    growing = jax.jit(lambda state, batch: (jnp.concatenate([state, batch]), None))  # another shape: another program
    one = jnp.ones(1)
    assert Timer().round(same, one, one, 1).compilations == 0
    assert Timer().round(growing, one, one, 1).compilations == 3  # a block of one step and a block of two


def test_a_host_transfer_in_the_timed_region_raises():
    step = jax.jit(lambda state, batch: (state + batch, None))

    def leaky(state, batch):
        return step(state, 1.0)

    with pytest.raises(Exception, match="[Dd]isallowed host-to-device"):
        Timer(blocks=1).round(leaky, jnp.zeros(()), None, 1)


class Loaded(FakeMachine):
    """Each step takes 0.2 s of processor time; others run 0.3 s and the hypervisor takes 0.1 s in each block."""

    known = reports_steal = True

    def sample(self, blocks=0):
        self.blocks = getattr(self, "blocks", 0) + blocks
        busy, steal = 0.2 * self.steps + 0.3 * self.blocks, 0.1 * self.blocks
        told = (busy if self.known else None, steal if self.known and self.reports_steal else None)
        return LoadCounters(
            cpu_s=0.2 * self.steps,
            switches=3 * self.blocks,
            busy_s=told[0],
            steal_s=told[1],
            cpus=2,
            threads=7 + self.blocks if self.known else None,
        )

    def timer(self, **options):
        return super().timer(before=self.sample, after=lambda: self.sample(1), **options)


def test_each_timed_block_has_its_load():
    machine = Loaded(fence_s=0.5)
    measured = machine.timer(blocks=2).round(machine.step, 0, None, 4)
    assert measured.block_s == (1.5, 1.5) and measured.double_block_s == (2.5, 2.5)
    assert measured.cpu_s == pytest.approx((0.8, 1.6, 0.8, 1.6))  # in the order in which they were timed
    assert measured.others_s == pytest.approx(4 * (0.3,)) and measured.steal_s == pytest.approx(4 * (0.1,))
    assert measured.switches == (3, 3, 3, 3) and measured.cpus == 2
    assert measured.threads == (8, 9, 10, 11)  # at the end of each block


def test_the_machine_is_probed_before_each_timed_block():
    machine, probed = FakeMachine(fence_s=0.5), []

    def probe():
        probed.append(machine.steps)
        machine.now += 100.0  # is in no block
        return float(len(probed))

    measured = machine.timer(blocks=2, probe=probe).round(machine.step, 0, None, 4)
    assert measured.probe_s == (1.0, 2.0, 3.0, 4.0) and probed == [8, 12, 20, 24]
    assert measured.block_s == (1.5, 1.5) and measured.double_block_s == (2.5, 2.5)
    assert machine.timer().round(machine.step, 0, None, 4).probe_s == ()


def test_unreported_values_are_not_recorded_and_others_are_known_without_the_hypervisor():
    machine = Loaded()
    machine.known = False
    measured = machine.timer().round(machine.step, 0, None, 4)
    assert measured.others_s == measured.steal_s == measured.threads == () and len(measured.cpu_s) == 2
    machine = Loaded()
    machine.reports_steal = False
    measured = machine.timer().round(machine.step, 0, None, 4)
    assert measured.others_s == pytest.approx(2 * (0.3,)) and measured.steal_s == ()


def test_one_process_decides_for_all_and_all_begin_a_block_together():
    """This process's clock would have ended both searches elsewhere."""
    machine, met, told = FakeMachine(), [], iter([False, False, True, True])
    timer = machine.timer(barrier=lambda: met.append(machine.steps), broadcast=lambda mine: next(told))
    assert timer.steps_per_block(machine.step, 0, None, least_s=0.01)[0] == 4
    assert met == [0, 1, 3, 7]
    measured = machine.timer(broadcast=lambda mine: False).round(machine.step, 0, None, 2)
    assert len(measured.warmup_block_s) == 6 and not measured.settled
