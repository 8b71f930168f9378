# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The requested devices, in a separate process, or the reason why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from doorway import QUICK_MLP, ROOT, command, environment, sketching
from thin import thin

from jaxbench import commandline
from jaxbench.catalog import jax_settings
from jaxbench.catalog.jax_settings import REFUSED, RESET, SETTINGS
from jaxbench.errors import UserError
from jaxbench.machine import cores, manifest, program_cache, start
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


def test_a_missing_accelerator_is_said_not_replaced_and_the_manifest_says_with_what():
    with pytest.raises(UserError, match="a TPU was requested .* but JAX finds none"):
        manifest.probe("tpu")
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


# Settings of JAX that change a measurement are refused, reset or named, each by its row in one table.


def test_the_table_names_settings_that_jax_has_and_docs_name_them_all():
    known, text = jax.config.values, (ROOT / "docs" / "USAGE.md").read_text()
    if jax.__version_info__ < (0, 11):
        assert set(SETTINGS) <= set(known)
    assert [name for name in SETTINGS if name.upper() not in text] == []
    assert all(known[name] in (None, setting.value) for name, setting in SETTINGS.items() if name in known)


def test_a_refusal_is_one_sentence_and_a_disabled_setting_is_none():
    with pytest.raises(UserError, match="JAX_DISABLE_JIT=1 is set, so nothing would be compiled: unset it"):
        jax_settings.refuse({"JAX_DISABLE_JIT": "1"})
    with pytest.raises(UserError, match="JAX_DEFAULT_PRNG_IMPL=rbg is set, but a training's keys are threefry2x32"):
        jax_settings.refuse({"JAX_DEFAULT_PRNG_IMPL": "rbg"})
    jax_settings.refuse({"JAX_DISABLE_JIT": "0", "JAX_DEFAULT_PRNG_IMPL": "threefry2x32", "JAX_ENABLE_X64": "1"})


def test_a_file_that_changes_settings_has_them_reset_or_is_refused(monkeypatch):
    monkeypatch.setattr(start, "changed_settings", {})
    start.reset_jax_settings()
    jax.config.update("jax_debug_nans", True)
    for _ in range(2):  # the second check must not take the reset for a change that the file made
        start.reset_jax_settings()
        assert not jax.config.jax_debug_nans and start.changed_settings == {"JAX_DEBUG_NANS": "True"}
    jax.config.update("jax_disable_jit", True)
    try:
        with pytest.raises(UserError, match="jax_disable_jit=True is set"):
            start.reset_jax_settings()
    finally:
        jax.config.update("jax_disable_jit", False)
        start.reset_jax_settings()


def test_a_page_names_no_variable_that_jaxbench_sets_itself() -> None:
    own = {**program_cache.KEEP_ALL, **program_cache.NO_CACHE, program_cache.FOLDER: "results/mlp/compiled"}
    own |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}
    assert jax_settings.sentences([own]) == []


def test_the_page_names_what_was_reset_and_what_was_not_but_no_path():
    given = {"JAX_DEBUG_NANS": "1", "JAX_ENABLE_X64": "1", "JAX_LIBRARY_PATH": "/a/b", "JAX_LOG_COMPILES": "1"}
    reset, wide, path = jax_settings.sentences([given, {**given, "JAX_DEBUG_NANS": "True"}])  # the worker's word
    assert reset.startswith("JAX_DEBUG_NANS=1 was set, and was reset")
    assert wide == "JAX_ENABLE_X64=1 was set: a run without it may measure something else."
    assert path.startswith("JAX_LIBRARY_PATH was set")
    assert jax_settings.sentences([{}, program_cache.variables(Path("/a/b"))]) == [], "a program is the same, if loaded"
    assert {setting.decision for setting in SETTINGS.values()} == {REFUSED, RESET}


@pytest.mark.parametrize("verb", ["try", "run", "train"])
def test_without_jit_no_verb_begins(verb, monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    with pytest.raises(UserError, match="^JAX_DISABLE_JIT=1 is set, so nothing would be compiled: unset it.$"):
        commandline.check_command([verb, "mlp"])


STRICT = {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_TRANSFER_GUARD": "disallow"}
RUN = ["run", "mlp", *QUICK_MLP, "--config.mesh.devices=2"]
STRICTLY = {"fsdp": [*RUN, "--config.strategy=fsdp"], "others": [*RUN, "--config.strategy=jit_auto,shard_map"]}


@pytest.mark.parametrize("words", thin([*STRICTLY.values(), ["try", "mlp"]], 1), ids=lambda words: words[-1])
def test_strict_settings_do_not_stop_us(words, tmp_path):
    environ = {**environment(), **STRICT}
    done = subprocess.run(sketching(*words), capture_output=True, text=True, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_platform_that_is_not_here_is_named(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError, match="^JAX_PLATFORMS=cuda is set, and JAX cannot start it here"):
        manifest.probe.__wrapped__("auto")


def test_an_ascii_locale_ends_in_no_traceback():
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command("help"), capture_output=True, env={**environment(), **ascii_only}, cwd=ROOT)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    code = (
        "import sys, jaxbench.app as a; a.absl_app.run = lambda *x, **y: print(sys.stdout.encoding, chr(181)); a.main()"
    )
    words = [command()[0], "-c", code]
    done = subprocess.run(words, capture_output=True, env={**environment(), **ascii_only}, cwd=ROOT)
    assert done.stdout.decode() == "utf-8 \u00b5\n", done.stderr
