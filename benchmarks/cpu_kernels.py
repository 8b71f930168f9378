# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a training step's time goes on one CPU core: each of XLA's kernels, its share, and its distance from the peak.

Traces some steps of a model on one device with one core, as `benchmarks.peers` configures it, and counts the FLOPs of
each kernel in the compiled text. Equal kernels (layers of equal shape) are one row. The peak is the best product of
1024 by 1024 before and after the trace, in the same process. Tracing and other work on the machine take time, so rates
are lower bounds.

Run: python -m benchmarks.cpu_kernels [--only=mlp,gpt,cnn,lstm,resnet18] [--rows=10] [--give_back]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from benchmarks.peers.suite_arm import SEED, configured
from jaxbench import parallel
from jaxbench.features.profile import profile
from jaxbench.hlo import operations as product_flops
from jaxbench.hlo.module import Instruction, Module, parse
from jaxbench.hlo.operations import OperationClassifier
from jaxbench.machine.start import start
from jaxbench.measure.arm import Arms
from jaxbench.measure.compile_report import compile_step
from jaxbench.processes.messages import KEEP_MEMORY

MODELS = ("mlp", "gpt", "cnn", "lstm", "resnet18")
STEPS, SIDE, REPEATS = 8, 1024, 20
COSTLY = (
    "exponential",
    "tanh",
    "erf",
    "log",
    "rsqrt",
    "sqrt",
    "divide",
    "reduce",
    "scatter",
    "gather",
    "transpose",
    "copy",
)


@dataclass
class Kernel:
    """All equal kernels: their seconds, FLOPs and number in a step."""

    seconds: float = 0.0
    flops: float = 0.0
    runs: float = 0.0


def peak() -> float:
    """FLOP/s of the best of some large products on this process's device."""
    x, product = jnp.ones((SIDE, SIDE)), jax.jit(jnp.matmul)
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.perf_counter()
        product(x, x).block_until_ready()
        best = min(best, time.perf_counter() - begun)
    return 2 * SIDE**3 / best


def what(line: Instruction, kind: str, module: Module) -> str:
    """The computation of a kernel: "product 512x512 by 512x2048", "element-wise 512x2048 (exponential, reduce)"."""
    inside, products, others = [line], [], set()
    while inside:
        one = inside.pop()
        if one.opcode in ("dot", "convolution"):
            shapes = [shape(module.instructions[name]) for name in one.operands[:2]]
            products.append(f"{'product' if one.opcode == 'dot' else 'convolution'} {' by '.join(shapes)}")
        others.add(one.opcode)
        inside += [module.instructions[name] for called in one.called for name in module.computations.get(called, [])]
    costly = [opcode for opcode in COSTLY if opcode in others]
    if products:
        return " and ".join(f"{count} x {text}" if count > 1 else text for text, count in Counter(products).items())
    return f"{kind} {shape(line)}" + (f" ({', '.join(costly)})" if costly else "")


def shape(line: Instruction) -> str:
    return line.type.partition("[")[2].partition("]")[0].replace(",", "x")


def trace(name: str, folder: Path) -> tuple[dict[str, Kernel], float]:
    """(kernels by their computation, seconds of a step)."""
    config = configured(name)
    device = jax.devices()[0]
    workload = Arms(config, name, device).workload({})
    program = parallel.build("jit_auto", workload, [device])
    compiled = compile_step(workload, program, config.batch)
    module = parse(compiled.hlo)
    with jax.set_mesh(program.mesh):
        batch = program.put(jax.jit(workload.synthetic, static_argnums=1)(jax.random.PRNGKey(1), config.batch))
        state = program.init(jax.random.PRNGKey(SEED))
        for _ in range(STEPS):
            state, metrics = compiled.call(state, batch)
        jax.block_until_ready(metrics)
        about = dict(steps=STEPS, folder=folder / name, module=module, point=name, worker="")
        profile.trace(compiled.call, state, batch, **about)  # type: ignore[arg-type]
    (planes,) = (folder / name).glob("plugins/profile/*/*.xplane.pb")
    window, (operations, *_) = profile.read(planes, OperationClassifier(module))
    kernels = defaultdict[str, Kernel](Kernel)
    for operation, nanoseconds in zip(operations, profile.share(window, operations), strict=True):
        line = module.instructions.get(operation.name)
        kernel = kernels[what(line, operation.kind, module) if line and not operation.container else operation.kind]
        kernel.seconds += nanoseconds * 1e-9 / STEPS
        kernel.flops += product_flops.of_instruction(line, module) / STEPS if line and not operation.container else 0.0
        kernel.runs += 1 / STEPS
    return kernels, (window[1] - window[0]) * 1e-9 / STEPS


def report(name: str, rows: int) -> None:
    """Prints the table of one model."""
    start("cpu", 1)
    before = peak()
    with tempfile.TemporaryDirectory() as folder:
        kernels, step_s = trace(name, Path(folder))
    best = max(before, peak())
    counted = sum(each.flops for each in kernels.values())
    title = (
        f"{name}: {1e3 * step_s:.1f} ms/step, {counted / step_s / 1e9:.0f} GFLOP/s; a large product {best / 1e9:.0f}"
    )
    table = Table("kernel", "runs", "ms", "share, %", "GFLOP/s", "of the peak", title=title)
    longest = sorted(kernels.items(), key=lambda item: -item[1].seconds)
    for text, each in longest[:rows]:
        rate = each.flops / each.seconds if each.seconds else 0.0
        rates = (f"{rate / 1e9:.0f}", f"{rate / best:.2f}") if each.flops else ("", "")
        table.add_row(
            text, f"{each.runs:.0f}", f"{1e3 * each.seconds:.2f}", f"{100 * each.seconds / step_s:.0f}", *rates
        )
    rest = sum(each.seconds for _, each in longest[rows:])
    idle = step_s - sum(each.seconds for each in kernels.values())
    for text, seconds in (("all others", rest), ("no kernel at work", idle)):
        table.add_row(text, "", f"{1e3 * seconds:.2f}", f"{100 * seconds / step_s:.0f}", "", "")
    busy = sum(each.seconds for each in kernels.values() if each.flops)
    table.caption = (
        f"Kernels with products: {100 * busy / step_s:.0f} % of the step at {counted / busy / best:.2f} of the peak. "
        f"At the peak products alone would take {1e3 * counted / best:.1f} ms."
    )
    Console(width=None if sys.stdout.isatty() else 120, markup=False, highlight=False).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--give_back", action="store_true", help="one model as without the suite's settings for malloc")
    args = parser.parse_args()
    names = args.only.split(",")
    if len(names) == 1 and (args.give_back or KEEP_MEMORY.items() <= os.environ.items()):
        return report(names[0], args.rows)
    for name in names:  # one process each: a backend starts only once, and keeps its memory as in a run
        command = [sys.executable, "-m", "benchmarks.cpu_kernels", f"--only={name}", f"--rows={args.rows}"]
        subprocess.run(command, check=True, env={**os.environ, **KEEP_MEMORY})


if __name__ == "__main__":
    main()
