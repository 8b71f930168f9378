# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where the time of a step goes: runs a few steps under JAX's profiler, and adds up the trace by op category.

On each device, every moment of the traced steps is attributed to the operations that run in it, or to "idle". So the
categories and "idle" add up to the wall time. Concurrent compute operations share a moment equally. Copies and
collectives get only the time in which nothing computes (their exposed part). A loop or a call gets only the time in
which nothing inside it runs. The results are means over devices.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

from jaxbench.core.clock import Batch, InFlight, State, Step
from jaxbench.core.schema import ProfileRecord
from jaxbench.hlo.module import Module, parse
from jaxbench.hlo.operations import KINDS, OperationClassifier
from jaxbench.measure.bench import Bench
from jaxbench.processes.server import stage

IDLE = "idle"
STEPS = "jaxbench.steps"  # the name of the traced steps in the trace
TOP = 20  # operations named in a record
_OFF_DEVICE = ("ThreadpoolListener", "$", "end: ")  # prefixes of the CPU events that are not operations


@dataclass(frozen=True)
class Operation:
    """One run of one operation on one device. container: a loop or a call; its contents are listed separately."""

    name: str
    kind: str
    container: bool
    start_ns: float
    end_ns: float

    @property
    def rank(self) -> int:
        """Of several concurrent operations, those with the lowest rank get the time."""
        return 2 if self.container else 1 if self.kind in ("collective", "copy") else 0


def of_point(bench: Bench, point: str, folder: str) -> ProfileRecord:
    """Traces one block of a prepared point into `folder`. Raises StageError."""
    ready = bench.prepared[point]
    number = jax.process_index() or bench.co_runners.here  # in a folder of its own: several would write one file
    here = f"-process{number}" if number else ""
    with stage("profile"), bench.running(ready) as (call, state, supply):
        timer = bench.timer_of(ready)
        _, state = timer.block(call, state, supply, 2)  # warms up, so that the trace has no first step
        return trace(
            call,
            state,
            supply,
            steps=ready.steps,
            ahead=timer.ahead,
            folder=folder + here,
            module=parse(ready.compiled.hlo),
            point=point,
            worker=bench.worker,
        )


def trace(
    call: Step[State, Batch],
    state: State,
    batch: Batch,
    *,
    steps: int,
    folder: str | Path,
    module: Module,
    point: str,
    worker: str,
    ahead: int | None = None,
    fence: Callable[[object], object] = jax.block_until_ready,
) -> ProfileRecord:
    """Runs `steps` dependent steps and a fence under the profiler. The step must have run before.

    Writes traces for TensorBoard (plugins/profile) and Perfetto (perfetto_trace.json.gz) to `folder`.

    Args:
      folder: two folders below the run's, such as <run>/profiles/<point>; created if missing.
      ahead: the most steps in flight, as in `Timer`.
      module: the compiled step; an empty one for a step that is not one program.

    Raises:
      ValueError: the trace contains no operation of a device.
    """
    folder = Path(folder)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # tracing each Python call would slow down the steps
    with jax.profiler.trace(folder, create_perfetto_trace=True, profiler_options=options):
        with jax.profiler.TraceAnnotation(STEPS):
            in_flight = InFlight(ahead, fence)
            for _ in range(steps):
                state, metrics = call(state, batch)
                in_flight.add(state, metrics)
            fence((state, metrics))
    # The newest: an earlier, interrupted run may have left a trace in this folder.
    planes = max(folder.glob("plugins/profile/*/*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
    wall_s, kinds, top = add_up(*read(planes, OperationClassifier(module)))
    return ProfileRecord(
        point=point,
        steps=steps,
        wall_s=wall_s,
        kinds=kinds,
        top=top,
        trace=(planes.parent / "perfetto_trace.json.gz").relative_to(folder.parent.parent).as_posix(),
        worker=worker,
    )


def read(planes: Path, classifier: OperationClassifier) -> tuple[tuple[float, float], list[list[Operation]]]:
    """The traced steps' (start_ns, end_ns), and the operations of each device. Raises ValueError if there are none."""
    with warnings.catch_warnings():
        # On first access to an event jaxlib creates a type without a module, which Python 3.12 warns about; as an error
        # the warning would abort the process.
        warnings.filterwarnings("ignore", message="builtin type event", category=DeprecationWarning)
        data = ProfileData.from_file(str(planes))
        host = [plane for plane in data.planes if plane.name.startswith("/host:")]
        events = (event for plane in host for line in plane.lines for event in line.events)
        window = next(((e.start_ns, e.start_ns + e.duration_ns) for e in events if e.name == STEPS), None)
        accelerators = [plane for plane in data.planes if plane.name.startswith(("/device:GPU:", "/device:TPU:"))]
        if accelerators:  # then the host's operations are only launches
            by_device = [list(_accelerator(plane, classifier)) for plane in accelerators]
        else:
            by_device = _cpu(host, classifier)
    devices = [operations for operations in by_device if operations]
    if window is None or not devices:
        raise ValueError(
            f"the trace {planes.name} contains no operation of a device: JAX's profiler does not support it."
        )
    return window, devices


def _cpu(planes: list[Any], classifier: OperationClassifier) -> list[list[Operation]]:
    """The operations of a CPU, from the threads that started them.

    If other threads finish an operation, the thread that started it has an "end: " event.
    """
    events = [event for plane in planes for line in plane.lines for event in line.events]
    ends = {
        (event.name, dict(event.stats).get("_c")): event.start_ns for event in events if event.name.startswith("end: ")
    }
    devices: dict[Any, list[Operation]] = defaultdict(list)
    for event in events:
        if event.name.startswith(_OFF_DEVICE):
            continue
        stats = dict(event.stats)
        if "hlo_op" in stats:
            name, end = stats["hlo_op"], event.start_ns + event.duration_ns
            end = max(end, ends.get((f"end: {name}", stats.get("_p")), 0))
            kind = classifier.kind(name, stats.get("hlo_module", ""))
            operation = Operation(name, kind, classifier.contains_others(name), event.start_ns, end)
            devices[stats.get("device_ordinal", 0)].append(operation)
    return list(devices.values())


def _accelerator(plane: Any, classifier: OperationClassifier) -> Iterator[Operation]:
    """The operations of a GPU or TPU.

    A GPU has one line for each stream, with kernels and copies. A TPU has one line for operations and one for
    asynchronous operations. The other lines repeat these.
    """
    lines = [line for line in plane.lines if line.name.startswith("Stream")]
    for line in lines or [line for line in plane.lines if line.name in ("XLA Ops", "Async XLA Ops")]:
        for event in line.events:
            stats = dict(event.stats)
            name = str(stats.get("hlo_op") or event.name.split(" = ")[0].removeprefix("%"))
            kind = classifier.kind(name, stats.get("hlo_module", ""), stats.get("hlo_category", ""), event.name)
            container = classifier.contains_others(name)
            yield Operation(name, kind, container, event.start_ns, event.start_ns + event.duration_ns)


def add_up(
    window: tuple[float, float], devices: list[list[Operation]]
) -> tuple[float, dict[str, float], tuple[tuple[str, str, float], ...]]:
    """Means over devices: (seconds of the window; seconds by category, including "idle"; the TOP operations as (name,
    category, seconds))."""
    kinds = dict.fromkeys((*KINDS, IDLE), 0.0)
    names: dict[tuple[str, str], float] = defaultdict(float)
    wall_ns, scale = window[1] - window[0], 1e-9 / len(devices)
    for operations in devices:
        shares = share(window, operations)
        for operation, nanoseconds in zip(operations, shares, strict=True):
            kinds[operation.kind] += nanoseconds * scale
            names[operation.name, operation.kind] += nanoseconds * scale
        kinds[IDLE] += max(0.0, wall_ns - sum(shares)) * scale
    top = sorted(names.items(), key=lambda item: -item[1])[:TOP]
    return wall_ns * 1e-9, kinds, tuple((name, kind, seconds) for (name, kind), seconds in top)


def share(window: tuple[float, float], operations: list[Operation]) -> list[float]:
    """The nanoseconds of `window` attributed to each operation of one device. No time is counted twice."""
    # A sweep over the starts and ends of operations: between two neighbouring edges the running set is constant.
    edges = []
    for number, operation in enumerate(operations):
        start, end = max(operation.start_ns, window[0]), min(operation.end_ns, window[1])
        if start < end:
            edges += [(start, True, number), (end, False, number)]
    shares, running, previous = [0.0] * len(operations), set[int](), window[0]
    for time, begins, number in sorted(edges):
        if running and time > previous:
            rank = min(operations[number].rank for number in running)
            working = [number for number in running if operations[number].rank == rank]
            if rank == 2:  # of containers, the innermost
                working = [max(working, key=lambda number: operations[number].start_ns)]
            for each in working:
                shares[each] += (time - previous) / len(working)
        previous = time
        running.add(number) if begins else running.discard(number)
    return shares
