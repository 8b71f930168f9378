# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The requested devices, in a separate process, or the reason why not."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from doorway import environment

from jaxbench.errors import UserError
from jaxbench.machine import cores, manifest, start
from jaxbench.workloads.models import image_layers


def in_child(code: str) -> dict:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("devices", [1, 3])
def test_fake_cpu_devices_are_pinned_and_single_threaded(devices):
    seen = in_child(
        "import json, os\n"
        "from jaxbench.machine import start\n"
        f"found = start.start('cpu', {devices})\n"
        "cores = len(os.sched_getaffinity(0))\n"
        "print(json.dumps({'devices': len(found), 'cores': cores, 'flags': os.environ['XLA_FLAGS']}))"
    )
    assert seen["devices"] == devices
    assert seen["cores"] == min(devices, cores.available_cores())
    assert "--xla_cpu_multi_thread_eigen=false" in seen["flags"]


def test_a_process_takes_its_own_devices_not_another_hosts():
    seen = in_child(
        "import json, jax\n"
        "from jaxbench.machine import start\n"
        "jax.devices = None\n"  # of all hosts
        "print(json.dumps({'devices': len(start.start('cpu', 2))}))"
    )
    assert seen["devices"] == 2


def test_a_machine_that_does_not_answer_is_a_sentence(monkeypatch):
    monkeypatch.setattr(manifest, "PROBE_LIMIT_S", 0.001)  # too little for Python to start
    with pytest.raises(UserError, match=r"0 s.*TPU_PROCESS_BOUNDS"):
        manifest.probe.__wrapped__("cpu")


def test_the_hosts_cpu_is_available_with_an_accelerator():
    seen = in_child(
        "import json, jax\n"
        "from jaxbench.machine import start\n"
        "from types import SimpleNamespace\n"
        "asked = []\n"
        "def devices():\n"
        "    asked.append(jax.config.jax_platforms)\n"
        "    return [SimpleNamespace(platform=asked[-1].split(',')[0])]\n"
        "jax.devices = devices\n"
        "[start.require(platform) for platform in ('tpu', 'cpu')]\n"
        "print(json.dumps({'asked': asked}))"
    )
    assert seen["asked"] == ["tpu,cpu", "cpu"]


def test_a_missing_accelerator_is_said_not_replaced():
    with pytest.raises(UserError, match="a TPU was requested .* but JAX finds none"):
        manifest.probe("tpu")


def test_the_manifest_says_with_what():
    found = manifest.probe("cpu")
    assert found["platform"] == "cpu"
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["versions"]["jax"] == __import__("jax").__version__
    assert found["git"].keys() <= {"commit", "dirty"}


def test_tracing_for_a_mesh_is_for_its_devices_not_for_the_host(monkeypatch):
    assert start.traced_for() == "cpu"
    away = SimpleNamespace(empty=False, abstract_device=SimpleNamespace(platform="tpu"))
    monkeypatch.setattr(jax.sharding, "get_abstract_mesh", lambda: away)
    assert start.traced_for() == "tpu"
    x, kernel = jnp.ones((1, 28, 28, 1)), jnp.ones((5, 5, 1, 4))
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    traced = jax.make_jaxpr(lambda x: image_layers.convolution(x, kernel, (1, 1), ((2, 2), (2, 2)), **options))(x)
    assert "custom_vjp" not in str(traced)  # the variants that are faster on a CPU are not used on a TPU
