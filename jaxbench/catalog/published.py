# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Published results, each with its paper. They are never rescaled, and never shown as results of this suite."""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from jaxbench.catalog import hardware, rows
from jaxbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

# {(catalogue row, devices of one node): column of `allreduce_busbw`}. The other column of the table is for 4 nodes, and
# a process sees one node.
_ALLREDUCE = {("NVIDIA A100 SXM 80GB", 8): "a100x8", ("NVIDIA H200 SXM", 8): "h200x8", ("NVIDIA B200 SXM", 8): "b200x8"}


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published table and the project that published it. ``SOURCES.csv`` names the paper and its table.

    The first line of a table's file states its unit, and whether it was verified, derived, or could not be confirmed.
    """

    frame: pd.DataFrame
    project: str
    confirmed: bool


def overlays() -> tuple[str, ...]:
    """The ids that the scaling figure can draw behind measured speed-ups: throughput by GPU count, from 1 GPU on."""
    return ("tf_dgx1_p100_synth",)


def overlaid(text: str, experiment: str = "") -> tuple[str, list[str]]:
    """(the table, its columns to draw) of config.report.overlay.

    text: "" for none; "TABLE" for the models of that table that belong to the experiment's family (resnet18: ResNet-50
    and ResNet-152); or "TABLE:VGG16,AlexNet" for these. Raises UserError for another table or model.
    """
    table, _, names = text.partition(":")
    if not table:
        return "", []
    if table not in overlays():
        meant = did_you_mean(table, overlays())
        raise UserError(f"--config.report.overlay={text} is unknown: {meant} Use '' for none.")
    known = [str(name) for name in read(table).frame.columns if name != "gpus"]
    asked = [name.strip() for name in names.split(",") if name.strip()]
    for name in asked:
        if name not in known:
            raise UserError(f"--config.report.overlay={text} names '{name}': {did_you_mean(name, known)}")
    # By family: a curve of VGG16 behind one of ResNet-18 would invite a comparison that means nothing.
    return table, asked or [name for name in known if family(name) in experiment.lower()]


def family(model: str) -> str:
    """ "resnet" of "ResNet-50"."""
    return "".join(itertools.takewhile(str.isalpha, model.lower()))


def allreduce() -> pd.DataFrame:
    """Published all-reduce bus bandwidth in bytes/s: one column per machine, by payload in bytes."""
    return read("allreduce_busbw").frame.set_index("bytes") * 1e9


def allreduce_column(device_kind: str, devices: int) -> str | None:
    """The column of `allreduce` for one node with `devices` devices of this kind, or None."""
    peak = hardware.find(device_kind)
    return _ALLREDUCE.get((peak.name, devices)) if peak is not None else None


def why_no_allreduce(device_kind: str, devices: int) -> str:
    """The reason why `allreduce_column` returned None, as a clause."""
    peak = hardware.find(device_kind)
    if device_kind == "cpu":
        return "the published series are for GPUs, and this ran on a CPU"
    if peak is None:
        return f"no series was published for this device ({hardware.why_not(device_kind)})"
    counts = sorted(count for name, count in _ALLREDUCE if name == peak.name)
    if not counts:
        return f"no series was published for {peak.name}"
    used = "1 device was" if devices == 1 else f"{devices} devices were"
    return f"the series published for {peak.name} is for {counts[0]} devices, and {used} used"


@dataclass(frozen=True)
class Interruptions:
    """Failures of a published training. goodput: the published lower bound on the share of effective training time."""

    devices: int
    per_device_hour: float
    goodput: float
    project: str


def interruptions() -> Interruptions:
    """The interruptions of Llama 3: the unexpected ones, over the hours of all its devices."""
    table = read("llama3_interruptions")
    row = table.frame.iloc[0]
    rate = row["unexpected"] / (row["gpus"] * row["days"] * 24)
    return Interruptions(int(row["gpus"]), float(rate), float(row["effective_at_least"]), table.project)


@dataclass(frozen=True)
class PublishedSpeedup:
    """The same job on processors and on an accelerator, as published. speedup: their time over the accelerator's."""

    job: str
    hardware: str
    speedup: float


def processor_and_accelerator() -> tuple[PublishedSpeedup, ...]:
    """Published pairs: image classification (2017), boosted trees (2017 and later)."""
    images, trees = (read(id).frame for id in ("dawnbench_cifar10_derived", "xgboost_gpu"))
    gpus = images[images["speedup_vs_cpu"] > 1]  # the table also has the processors themselves, at 1
    return (
        *(
            PublishedSpeedup(
                f"ResNet-164 {row['variant']}, {row['framework'].split()[0]}",
                f"{row['device'].removeprefix('1x ')} vs 16 vCPU",
                row["speedup_vs_cpu"],
            )
            for row in gpus.to_dict("records")
        ),
        *(
            PublishedSpeedup("boosted trees", row["hardware"].replace(" + ", " vs "), row["cpu_hist"] / row["gpu_hist"])
            for row in trees.to_dict("records")
        ),
    )


def read(id: str) -> Published:
    """Reads one published table. Raises UserError for an unknown id."""
    sources = {row["id"]: row for row in rows("published/SOURCES.csv")}
    if id not in sources:
        raise UserError(f"unknown published series '{id}': {did_you_mean(id, sources)}")
    import pandas as pd  # late: every verb and every worker loads this file, and few read a table

    text = resources.files("jaxbench.catalog").joinpath("published", f"{id}.csv").read_text(encoding="utf-8")
    head, _, table = text.partition("\n")
    project = sources[id]["paper_or_project"]
    return Published(frame=pd.read_csv(io.StringIO(table)), project=project, confirmed="status=unconfirmed" not in head)
