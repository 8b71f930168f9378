# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What slows NVIDIA GPUs down, as NVML shows it: paths between them, slots, NVLink, power limits and clocks.

The answers are read first, into `Gpu`, and judged afterwards. `nvml` is the module `pynvml` of the package
nvidia-ml-py. A question that a GPU does not answer is None. The tests have no answers of a real machine: theirs were
written by hand from the documentation.
Source: NVIDIA, NVML API Reference (device queries, NVLink, P2P status, clocks event reasons).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxbench.command_form import with_extra
from jaxbench.features.doctor.finding import DoctorFinding, Result, check, good_if
from jaxbench.records.power import POWER_LIMIT, REASONS, named

# nvmlDeviceGetP2PStatus: reasons by code; 0 is on.
_PEER = {
    1: "the chipset does not support it",
    2: "these GPUs do not support it",
    3: "the GPUs are at different processors",
    4: "a registry key disables it",
    5: "this system does not support it",
}
# nvmlDeviceGetTopologyCommonAncestor: the way from one GPU to another.
_WAYS = {
    0: "on one board",
    10: "through one switch",
    20: "through several switches",
    30: "through a host bridge",
    40: "through host bridges of one processor",
    50: "from one processor to another",
}
_SEAT = "Seat the card again, avoid risers, and check the board's manual: some slots share lanes."
NO_PACKAGE = "NVML cannot be asked about the GPUs without its package."
_LINKS = 18  # the most NVLinks of a GPU
_UNCORRECTED, _SINCE_LOADED = 1, 0  # nvmlMemoryErrorType_t and nvmlEccCounterType_t


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """NVML's answers for one GPU; None where it gave none.

    Attributes:
      width, slot_width: lanes in use, and the most that GPU and slot allow.
      generation, slot_generation: of PCIe, likewise. An idle GPU lowers the generation to save power.
      busy: whether the GPU is in its highest performance state.
      nvlinks: whether each of its NVLinks is active; (): it has none.
      limit_w, default_w: the power limit, and the one it left the factory with.
      reasons: the bits of what lowers its clocks; 0: nothing.
      memory_errors: errors of its memory that it could not correct since the driver was loaded.
      persistent: whether the driver stays loaded while nobody uses the GPU. ecc: whether its memory corrects errors.
      others: the processes that compute on it, by id; not this one.
      peers: by other GPU, NVML's code of whether it may access that GPU's memory: 0 is yes.
      ways: by other GPU, NVML's code of the nearest common ancestor.
    """

    index: int
    name: str
    width: int | None = None
    slot_width: int | None = None
    generation: int | None = None
    slot_generation: int | None = None
    busy: bool = False
    nvlinks: tuple[bool, ...] = ()
    limit_w: float | None = None
    default_w: float | None = None
    reasons: int | None = None
    memory_errors: int | None = None
    persistent: bool | None = None
    ecc: bool | None = None
    others: tuple[int, ...] | None = None
    peers: tuple[tuple[int, int], ...] = ()
    ways: tuple[tuple[int, int], ...] = ()


def examine(gpus: int, judge: Callable[[Sequence[Gpu]], list[DoctorFinding]]) -> list[DoctorFinding]:
    """The findings on a machine with this number of NVIDIA GPUs; []: it has none. judge: `spoiling`, before they work,
    or `at_work`, right after: an idle GPU lowers its clocks and its link."""
    if not gpus:
        return []
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return [DoctorFinding("GPUs", "unknown", NO_PACKAGE, f"Install nvidia-ml-py: {with_extra('nvml')}.")]
    try:
        return judge(read(nvml))
    except nvml.NVMLError as error:
        return [DoctorFinding("GPUs", "unknown", f"NVML does not answer ({error}).", "Check with nvidia-smi.")]


def read(nvml: Any) -> list[Gpu]:
    """NVML's answers for all GPUs. Raises nvml.NVMLError if NVML does not start."""

    def ask(question: str, *given: Any) -> Any:
        try:
            return getattr(nvml, f"nvmlDeviceGet{question}")(*given)
        except (nvml.NVMLError, AttributeError):  # this GPU, driver or version of the package does not have it
            return None

    nvml.nvmlInit()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return [_gpu(ask, handles, index) for index in range(len(handles))]
    finally:
        nvml.nvmlShutdown()


def _gpu(ask: Callable[..., Any], handles: Sequence[Any], index: int) -> Gpu:
    """What NVML says of one GPU and its links to the others."""
    mine = handles[index]
    others = [(other, handle) for other, handle in enumerate(handles) if other != index]
    name = ask("Name", mine)
    links = [ask("NvLinkState", mine, link) for link in range(_LINKS)]
    limit, default = ask("PowerManagementLimit", mine), ask("PowerManagementDefaultLimit", mine)  # in mW
    peers = [(other, ask("P2PStatus", mine, handle, 0)) for other, handle in others]  # 0: reads, as NCCL asks
    ways = [(other, ask("TopologyCommonAncestor", mine, handle)) for other, handle in others]
    running = ask("ComputeRunningProcesses", mine)
    return Gpu(
        index=index,
        name=name.decode() if isinstance(name, bytes) else str(name),
        width=ask("CurrPcieLinkWidth", mine),
        slot_width=ask("MaxPcieLinkWidth", mine),
        generation=ask("CurrPcieLinkGeneration", mine),
        slot_generation=ask("MaxPcieLinkGeneration", mine),
        busy=ask("PerformanceState", mine) == 0,
        nvlinks=tuple(bool(link) for link in links if link is not None),
        limit_w=limit and limit / 1e3,
        default_w=default and default / 1e3,
        reasons=ask("CurrentClocksEventReasons", mine),
        memory_errors=ask("TotalEccErrors", mine, _UNCORRECTED, _SINCE_LOADED),
        persistent=_on(ask("PersistenceMode", mine)),
        ecc=_on((ask("EccMode", mine) or (None,))[0]),
        others=None if running is None else tuple(int(each.pid) for each in running if each.pid != os.getpid()),
        peers=tuple((other, code) for other, code in peers if code is not None),
        ways=tuple((other, code) for other, code in ways if code is not None),
    )


def _on(answer: int | None) -> bool | None:
    """NVML's answer as a flag; None: it does not know."""
    return None if answer is None else bool(answer)


def spoiling(gpus: Sequence[Gpu]) -> list[DoctorFinding]:
    """What will spoil the numbers of these GPUs, as far as it shows before they work."""
    several = [peers(gpus)] if len(gpus) > 1 else []
    return [sharing(gpus), persistence(gpus), power(gpus), correction(gpus), *several, slots(gpus)]


def at_work(gpus: Sequence[Gpu]) -> list[DoctorFinding]:
    """What shows only while they work, or right after."""
    return [
        generations(gpus),
        *([nvlinks(gpus)] if any(gpu.nvlinks for gpu in gpus) else []),
        clocks(gpus),
        *([memory_errors(gpus)] if any(gpu.memory_errors is not None for gpu in gpus) else []),
    ]


@check(
    "GPU processes",
    "which processes use its GPUs",
    says="Another process uses {shared}.",
    good="No other process uses the GPUs.",
    advice="Wait for it, or choose another GPU with CUDA_VISIBLE_DEVICES: two processes slow each other down.",
)
def sharing(gpus: Sequence[Gpu]) -> Result | None:
    """Whether another process computes on a GPU. Ask while none of our own does."""
    known = {gpu.index: gpu.others for gpu in gpus if gpu.others is not None}
    if not known:
        return None
    shared = [f"GPU {index} (process {', '.join(map(str, others))})" for index, others in known.items() if others]
    return Result("bad" if shared else "good", {"shared_gpus": len(shared)}, {"shared": ", ".join(shared)})


@check(
    "GPU persistence",
    "whether the driver of its GPUs stays loaded",
    says="Persistence mode is off on GPU {off}.",
    good="Persistence mode is on.",
    advice="Switch it on (nvidia-smi -pm 1).",
)
def persistence(gpus: Sequence[Gpu]) -> Result | None:
    """Whether the driver stays loaded: otherwise each start pays seconds for loading it, at other clocks."""
    known = {gpu.index: gpu.persistent for gpu in gpus if gpu.persistent is not None}
    if not known:
        return None
    off = [str(index) for index, on in known.items() if not on]
    return Result(good_if(not off), {"without_persistence": len(off)}, {"off": ", ".join(off)})


@check(
    "GPU memory correction",
    "whether the memory of its GPUs corrects errors",
    says="Error correction is on for {gpus_with_ecc} of {known} GPUs, so their bandwidths differ.",
    good="Error correction of the memory is {state}.",
    advice="Set it alike on all of them (nvidia-smi -e).",
)
def correction(gpus: Sequence[Gpu]) -> Result | None:
    """Whether all GPUs correct errors of their memory, or none: on cards with GDDR it costs bandwidth."""
    known = {gpu.index: gpu.ecc for gpu in gpus if gpu.ecc is not None}
    if not known:
        return None
    on = sum(known.values())
    facts = {"known": len(known), "state": "on" if on else "off"}
    return Result(good_if(on in (0, len(known))), {"gpus_with_ecc": on}, facts)


@check(
    "peer-to-peer",
    "whether its GPUs may access each other's memory",
    says="Peer-to-peer is off between GPUs {pair}: {reason}. Their messages pass through the memory of the host.",
    good="Peer-to-peer is on between all {gpus} GPUs.",
    advice="Expect data parallelism to gain little. Larger per-device batches, accumulation and fewer bytes "
    "(lever.reduction=bfloat16) help; in a virtual machine ask for peer-to-peer, else check IOMMU and ACS.",
)
def peers(gpus: Sequence[Gpu]) -> Result | None:
    """Whether each GPU may access every other's memory. NVLink needs it too."""
    # Once, although both GPUs of a pair answer.
    pairs = {(gpu.index, other): code for gpu in gpus for other, code in gpu.peers if gpu.index < other}
    if not pairs:
        return None
    off = {pair: code for pair, code in pairs.items() if code}
    ways = {(gpu.index, other): _WAYS.get(code, "") for gpu in gpus for other, code in gpu.ways}
    numbers = {"pairs": len(pairs), "pairs_without_peer_to_peer": len(off)}
    if not off:
        return Result("good", numbers, {"gpus": len(gpus)})
    (a, b), code = next(iter(off.items()))
    more = f" and {len(off) - 1} more pairs" if len(off) > 1 else ""
    way = f", which are connected {ways[a, b]}" if ways.get((a, b)) else ""
    facts = {"pair": f"{a} and {b}{more}{way}", "reason": _PEER.get(code, "NVML does not say why")}
    return Result("doubtful", numbers, facts)


@check(
    "GPU slots",
    "the width of the slots of its GPUs",
    says="{narrow}.",
    good="Each GPU uses all lanes of its slot ({slot}).",
    advice=_SEAT,
)
def slots(gpus: Sequence[Gpu]) -> Result | None:
    """Whether each GPU uses all lanes of its slot."""
    known = [gpu for gpu in gpus if gpu.width and gpu.slot_width]
    if not known:
        return None
    narrow = [f"GPU {g.index} uses {g.width} of {g.slot_width} lanes" for g in known if g.width != g.slot_width]
    facts = {"narrow": "; ".join(narrow), "slot": f"PCIe {known[0].slot_generation}.0 x{known[0].slot_width}"}
    return Result(good_if(not narrow), {"fewest_lanes": min(gpu.width or 0 for gpu in known)}, facts)


@check(
    "GPU slots at work",
    "the generation of the slots of its GPUs",
    says="{slow}.",
    good="No busy GPU uses less than the generation of its slot.",
    advice=_SEAT,
)
def generations(gpus: Sequence[Gpu]) -> Result | None:
    """Whether each busy GPU uses its slot's generation: an idle one lowers it to save power."""
    known = [gpu for gpu in gpus if gpu.generation and gpu.slot_generation]
    if not known:
        return None
    slow = [
        f"GPU {g.index} uses PCIe {g.generation}.0 of {g.slot_generation}.0 while it works"
        for g in known
        if g.busy and g.generation != g.slot_generation
    ]
    return Result(good_if(not slow), {"slow_slots": len(slow)}, {"slow": "; ".join(slow)})


@check(
    "NVLink",
    says="Inactive: {inactive}.",
    good="All {nvlinks} NVLinks are active.",
    advice="Check the bridge between the cards, or the fabric manager of an NVSwitch (nvidia-smi nvlink --status).",
)
def nvlinks(gpus: Sequence[Gpu]) -> Result:
    """Whether all NVLinks are active."""
    linked = [gpu for gpu in gpus if gpu.nvlinks]
    down = {gpu.index: gpu.nvlinks.count(False) for gpu in linked if not all(gpu.nvlinks)}
    numbers = {"nvlinks": sum(len(gpu.nvlinks) for gpu in linked), "inactive_nvlinks": sum(down.values())}
    texts = [f"{count} of {len(gpus[index].nvlinks)} NVLinks of GPU {index}" for index, count in down.items()]
    return Result(good_if(not down), numbers, {"inactive": ", ".join(texts)})


@check(
    "GPU power",
    "the power limits of its GPUs",
    says="Power limits below the default: {low}.",
    good="All power limits are at their default.",
    advice="Raise it (nvidia-smi -pl), or name the limit with your result.",
)
def power(gpus: Sequence[Gpu]) -> Result | None:
    """Whether a power limit is below the default."""
    known = [(gpu, gpu.limit_w, gpu.default_w) for gpu in gpus if gpu.limit_w and gpu.default_w]
    if not known:
        return None
    low = [f"GPU {gpu.index} {limit:.0f} of {default:.0f} W" for gpu, limit, default in known if limit < default]
    numbers = {"lowest_limit_w": min(limit for _, limit, _ in known)}
    return Result(good_if(not low), numbers, {"low": ", ".join(low)})


@check(
    "GPU clocks",
    "what lowers the clocks of its GPUs",
    says="Clocks are lowered: {lowered}.",
    advice="Improve the cooling or the power supply until this stops.",
    cases={"none": ("Nothing lowers the clocks of the GPUs.", "")},
)
def clocks(gpus: Sequence[Gpu]) -> Result | None:
    """Whether heat or a fault lowers a clock now. The power limit does so on every GPU that works hard."""
    known = {gpu.index: gpu.reasons & sum(REASONS) for gpu in gpus if gpu.reasons is not None}
    if not known:
        return None
    slowed = {index: named(bits) for index, bits in known.items() if bits}
    texts = [f"GPU {index}: {', '.join(reasons)}" for index, reasons in slowed.items()]
    state = good_if(all(bits in (0, POWER_LIMIT) for bits in known.values()))
    return Result(state, {"slowed_gpus": len(slowed)}, {"lowered": "; ".join(texts)}, case="" if slowed else "none")


@check(
    "GPU memory errors",
    says="Uncorrected memory errors: {errors}.",
    good="No GPU had an uncorrected memory error since its driver was loaded.",
    advice="Reset the GPU, and have it replaced if errors return (nvidia-smi -q -d ECC,ROW_REMAPPER).",
)
def memory_errors(gpus: Sequence[Gpu]) -> Result:
    """Whether the memory of a GPU had errors that it could not correct."""
    wrong = {gpu.index: gpu.memory_errors for gpu in gpus if gpu.memory_errors}
    texts = [f"{count} on GPU {index}" for index, count in wrong.items()]
    numbers = {"uncorrected_memory_errors": sum(wrong.values())}
    return Result("bad" if wrong else "good", numbers, {"errors": ", ".join(texts)})
