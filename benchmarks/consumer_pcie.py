# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares published training on consumer GPUs over PCIe without peer-to-peer with the link model of forecasts.

RTX 4090: one language model on 1, 2 and 4 rented GPUs. Its author printed the throughput, and how the optimizer's step,
which contains the sum of gradients, grew from 19 to 400 ms on two GPUs, while the passes took as long as before. Both
numbers together give the batch of a GPU: the step of one takes b / 15.4 s, that of two 381 ms longer, and two do 4.5
samples/s, so b = 1.0. The link model then gives the throughput on 2 and 4 GPUs from that of one: with gradients of two
bytes, all hidden (fast end), nothing hidden, and nothing hidden at the slowest published rate (slow end).

RTX 4070 Ti SUPER: only hours of a training are known. Their ratio is the time that the second GPU adds to a step, as a
share of one GPU's step with the whole batch. From the gradient's bytes and the link model follows how long that step
must be: an implied time that a reader can judge. Run: python -m benchmarks.consumer_pcie
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from jaxbench.catalog import hardware, published
from jaxbench.digits import digits
from jaxbench.features.forecast.network import PciePath
from jaxbench.hlo.collective_counts import sent

OPTIMIZER_S = 0.019, 0.400  # of one and of two RTX 4090, as printed
BYTES = 2, 4  # of a gradient: 1.7 billion parameters and their optimizer fit 24 GB only in 16 bits; float32 elsewhere
PATH = PciePath(generation=4, lanes=16, peer=False)
PEER = PciePath(generation=4, lanes=16, peer=True)
SLOW = PciePath(generation=4, lanes=16, peer=False, limit=hardware.pcie("slowest_staged"))


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """Samples per second on `gpus` GPUs, published and from the link model. hidden, bare: with all and none of the sum
    hidden; slow: none hidden at the slowest rate; peer: none hidden, with peer-to-peer."""

    gpus: int
    published: float
    hidden: float
    bare: float
    slow: float
    peer: float

    @property
    def inside(self) -> bool:
        return self.slow <= self.published <= self.hidden


def sum_s(parameters: float, gpus: int, path: PciePath, size: int) -> float:
    """The seconds of a ring's sum of a gradient, with `size` bytes for each parameter."""
    link = path.link(gpus)
    return link.alpha_s + size * parameters * sent("all-reduce", gpus) / link.bytes_per_s


def batch(alone: float, two: float) -> float:
    """The batch b of a GPU from the throughput of one and of two: 2 b / (b / alone + added) = two."""
    added = OPTIMIZER_S[1] - OPTIMIZER_S[0]
    return added * two / (2 - two / alone)


def language_model() -> list[Throughput]:
    """The rows of RTX 4090 from 2 GPUs on."""
    frame = published.read("consumer_pcie").frame
    rows = frame[frame["gpu"] == "RTX 4090"].set_index("gpus")
    parameters, rates = float(rows["params"].iloc[0]), rows["value"].astype(float)
    size = batch(rates[1], rates[2])
    step_s = size / rates[1]
    made = []
    for gpus in (2, 4):
        sums = {path: sum_s(parameters, gpus, path, BYTES[0]) for path in (PATH, SLOW, PEER)}
        made.append(Throughput(
            gpus=gpus, published=float(rates[gpus]), hidden=gpus * size / max(step_s, sums[PATH]),
            bare=gpus * size / (step_s + sums[PATH]), slow=gpus * size / (step_s + sums[SLOW]),
            peer=gpus * size / (step_s + sums[PEER]),
        ))  # fmt: skip
    return made


def implied_steps() -> list[tuple[str, float, float, float]]:
    """(model, speed-up on two GPUs, seconds of one GPU's step at the model's rate, and at the slowest): RTX 4070 Ti."""
    frame = published.read("consumer_pcie").frame
    made = []
    for model, rows in frame[frame["gpu"] == "RTX 4070 Ti SUPER"].groupby("model", sort=False):
        alone, two = (float(rows[rows["gpus"] == gpus]["value"].iloc[0]) for gpus in (1, 2))
        added = two / alone - 0.5  # of one GPU's step: each of two has half of the batch
        fast, slow = (sum_s(float(rows["params"].iloc[0]), 2, path, BYTES[1]) / added for path in (PATH, SLOW))
        made.append((str(model), alone / two, fast, slow))
    return made


def main() -> None:
    console = Console(width=110)
    table = Table("RTX 4090", "published, samples/s", "link model", "nothing hidden", "with peer-to-peer", "inside")
    for row in language_model():
        table.add_row(
            f"{row.gpus} GPUs", f"{row.published:g}", f"{digits(row.slow)} .. {digits(row.hidden)}", digits(row.bare),
            digits(row.peer), "yes" if row.inside else "no",
        )  # fmt: skip
    console.print(table)
    table = Table("RTX 4070 Ti SUPER", "published speed-up", "implied step of one GPU, ms")
    for model, ratio, fast, slow in implied_steps():
        table.add_row(model, f"{ratio:.2f}", f"{digits(1e3 * fast)} .. {digits(1e3 * slow)}")
    console.print(table)


if __name__ == "__main__":
    main()
