# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Steps compiled anew for a TPU slice and a host of GPUs, if XLA's compilers for them are installed
(`make test-targets`): right ones communicate as expected, wrong ones are detected, kernels and collectives compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import compiled_cases as cases
import pytest
from doorway import QUICKER, environment

from jaxbench.analysis import compiled
from jaxbench.catalog import targets
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.machine import start as start_lib

# Optimised, and not from a cache: programs for absent devices cannot be loaded again.
PLAIN = {name: value for name, value in environment().items() if name not in QUICKER}


def installed(text: str) -> bool:
    try:
        start_lib.require_target(targets.parse(text))
    except UserError:
        return False
    return True


afresh = pytest.mark.parametrize(
    "target",
    [
        pytest.param(text, marks=pytest.mark.skipif(not installed(text), reason=f"no compiler for {text} here"))
        for text in cases.TARGETS
    ],
)


def dry_run(folder: Path, target: str, *words: str) -> tuple[int, list[compiled.CompiledRow]]:
    command = [sys.executable, "-m", "jaxbench", "run", *words, "--preset=smoke", "--dry_run", f"--target={target}"]
    command.append(f"--workdir={folder}")
    done = subprocess.run(command, env=PLAIN, capture_output=True, text=True, timeout=580, cwd=folder.parent)
    return done.returncode, compiled.rows(RunFolder(folder))


@afresh
def test_every_strategy_afresh(target, tmp_path):
    code, rows = dry_run(tmp_path / "run", target, "mlp", "--config.strategy=all", "--config.mesh.devices=2,8")
    assert code == 0 and len(rows) == 28, [row.why for row in rows if not row.right]
    assert all(row.fits and row.right for row in rows)


@afresh
def test_collectives_and_kernels_afresh(target, tmp_path):
    _, rows = dry_run(tmp_path / "collectives", target, "collectives", "--config.sizes=65536")
    asked = {row.name.split("/")[0] for row in rows if row.right is False}
    # A TPU's compiler emits a one-dimensional scatter as a sum; this is detected, and its bandwidth refused.
    assert asked == ({"reduce_scatter"} if target.startswith("v5e") else set())
    code, rows = dry_run(tmp_path / "matmul", target, "matmul")
    assert code == 0 and rows and all(row.fits for row in rows)


@afresh
def test_wrong_strategies_afresh(target, tmp_path):
    names = "mlp-shard_map,mlp-dropped,mlp-doubled,mlp-stray"
    about = {**PLAIN, **start_lib.target_environment(targets.parse(target))}
    about["PYTHONPATH"] = os.pathsep.join([str(Path(cases.__file__).parent), about.get("PYTHONPATH", "")])
    code = f"import compiled_cases as c; c.FOLDER = c.Path({str(tmp_path)!r}); c.make({target!r}, {names!r})"
    subprocess.run([sys.executable, "-c", code], env=about, check=True, capture_output=True, timeout=580)
    from measure.test_compiled import judged

    for name in names.split(","):
        case = cases.BY_NAME[name]
        found, _ = judged(name, target, cases.text(case, target, tmp_path))
        assert found.ok != case.broken, found.reason


PAGED = """
import jax
from jaxbench.catalog import targets
from jaxbench.machine import start
from jaxbench.parallel import generation
from jaxbench.workloads.generation import PRESETS, GenerationWorkload, Lengths
from jaxbench.workloads.models.gpt import Dimensions

devices = start.target_devices(targets.parse("{target}"))[:2]
shape = Dimensions(**{{**vars(PRESETS["8b"]), "layers": 2}})
how = dict(layout="pages", attention="pallas")
workload = GenerationWorkload(name="decode", shape=shape, lengths=Lengths(896, 128, 1024), **how)
on = generation.Decoder.on(workload, devices, {{"data": 1, "tensor": 2}}, 8)
program = generation.step(on)
with program.context():
    compiled = program.step.lower(*program.avals()).compile()
held = compiled.memory_analysis()
print(compiled.as_text().count("tpu_custom_call"), held.temp_size_in_bytes, held.alias_size_in_bytes, on.cache_bytes)
"""


@pytest.mark.parametrize("target", [text for text in cases.TARGETS if installed(text) and text.startswith("v")])
def test_afresh_the_paged_kernel_reads_a_cache_without_a_copy(target: str) -> None:
    variables = start_lib.target_environment(targets.parse(target))
    code = PAGED.format(target=target)
    done = subprocess.run([sys.executable, "-c", code], env={**PLAIN, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kernels, temporary, donated, cache = map(int, done.stdout.split())
    assert kernels == 2 and donated >= cache
    assert temporary < cache / 4, "keys or values of one layer would be a quarter"


# Prints for each kernel of STREAM's copy, as compiled for an H100, how many threads a block has.
THREADS = r"""
import pathlib, re, sys
from jaxbench.catalog import targets
from jaxbench.cases import runnable
from jaxbench.machine import start
from jaxbench.workloads.kernels import elementwise
(device,) = start.target_devices(targets.parse("h100:1"))
(copy,) = elementwise.stream_cases("copy", "float32", 2**24, ("jit",))
runnable.compile_for(runnable.kernel_chain(copy, device))
for file in pathlib.Path(sys.argv[1]).glob("*.ptx"):
    for name, threads in re.findall(r"\.entry (\w+)\([^{]*\.reqntid (\d+)", file.read_text()):
        print(name, threads)
"""


@pytest.mark.skipif(not installed("h100:1"), reason="no compiler for h100:1 here")
def test_feeding_a_result_back_touches_one_number_on_a_gpu_afresh(tmp_path):
    """A kernel that goes over the whole array again would halve the bandwidth that STREAM's copy measures."""
    about = {**PLAIN, **start_lib.target_environment(targets.parse("h100:1"))}
    about["XLA_FLAGS"] += f" --xla_dump_to={tmp_path / 'dump'}"
    command = [sys.executable, "-c", THREADS, str(tmp_path / "dump")]
    done = subprocess.run(command, env=about, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    threads = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    (back,) = (name for name in threads if "dynamic_update_slice" in name)
    assert threads.pop(back) == 1
    assert len(threads) == 1 and all(count > 1 for count in threads.values()), threads
