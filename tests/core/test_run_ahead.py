# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CPU devices that share few threads run many steps in a row without a hang, because few steps are in flight."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from jaxbench.core.clock import RUN_AHEAD, InFlight, Timer, run_ahead

# In a process of its own: XLA sizes its pool once, and a hang aborts the process.
MANY_STEPS = """
import os
limits = {{"warn_stuck": 4, "terminate": 8}}
os.environ["XLA_FLAGS"] = " ".join(f"--xla_cpu_collective_call_{{k}}_timeout_seconds={{v}}" for k, v in limits.items())
os.environ["NPROC"] = "2"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", {devices})
from jaxbench.core.clock import Timer, run_ahead
devices = jax.devices()
mesh = Mesh(np.array(devices), ("d",))

def step(state, batch):
    sums = [jax.lax.psum(jnp.tanh(jax.lax.psum(x @ x, "d") @ x), "d") / 1e3 for x in state]
    return sums, {returned}

spec = [P("d")] * {sums}
mapped = jax.shard_map(step, mesh=mesh, in_specs=(spec, None), out_specs=(spec, P()), check_vma=False)
run = jax.jit(mapped, donate_argnums=0)
place = NamedSharding(mesh, P("d"))
state = [jax.device_put(jnp.full((64 * len(devices), 64), (i + 1) / 1e3), place) for i in range({sums})]
Timer(ahead=run_ahead(devices)).block(run, state, None, 300)
print("done")
"""


@pytest.mark.parametrize(
    ("devices", "sums", "returned"),
    [
        (2, 1, '{"loss": sums[0].sum()}'),
        (2, 1, "{}"),  # nothing to wait for but the state
        (8, 16, '{"loss": sums[0].sum()}'),
    ],
)
def test_two_threads_are_enough_for_many_steps(devices, sums, returned):
    program = MANY_STEPS.format(devices=devices, sums=sums, returned=returned)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={**os.environ}
    )
    assert done.stdout.strip() == "done", done.stderr[-500:]


def test_the_oldest_step_is_awaited_and_without_metrics_the_state():
    waited: list = []
    in_flight = InFlight(RUN_AHEAD, waited.append)
    for number in range(5):
        in_flight.add(f"state {number}", {"loss": number})
    assert [metrics["loss"] for metrics in waited] == [0, 1, 2]
    in_flight.add("state 5", {})
    assert waited[-1] == "state 5"


def test_one_device_and_accelerators_have_no_limit():
    assert run_ahead(jax.devices()[:1]) is None
    assert run_ahead(jax.devices()[:2]) == RUN_AHEAD
    waited: list = []
    one = jnp.ones(())
    Timer(fence=waited.append).block(lambda state, batch: (state, {"loss": one}), one, None, 50)
    assert len(waited) == 1  # the fence of the block
