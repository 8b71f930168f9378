# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A compiled text becomes work and messages: no message is lost, and the order determines what is hidden."""

from __future__ import annotations

import dataclasses

import compiled_cases as cases
import pytest
from thin import thin

from jaxbench.catalog import hardware, targets
from jaxbench.core.schema import Collective
from jaxbench.features.forecast import network, schedule, work
from jaxbench.features.forecast.schedule import Loop, Send, Wait
from jaxbench.features.forecast.work import Chip, Cost
from jaxbench.hlo import collective_counts, operations
from jaxbench.hlo.module import parse

CHIP = Chip(
    memory_bytes_per_s=1e9, products=(("bfloat16", 1e12), ("float32", 1e12)), peak_flop_per_s=2e12,
    attention_flop_per_s=5e11,
)  # fmt: skip
MESH = {"data": 8}
EVERY = [(case.name, target) for case in cases.CASES for target in case.targets]


def message(size: int = 1000, kind: str = "all-reduce", group: int = 8) -> Collective:
    return Collective(kind=kind, count=1, bytes=size, elements=size // 4, group=group, wire_bytes=size)


def spent(seconds: float) -> Cost:
    return Cost(seconds=seconds, how="memory")


def one_second(collective: Collective, stride: int) -> float:
    return collective.wire_bytes / 1000


def read(name: str, target: str) -> tuple[schedule.Event, ...]:
    on = work.chip(targets.parse(target).device_kind)
    assert on is not None
    return schedule.read(cases.text(cases.BY_NAME[name], target), MESH, on)


@pytest.mark.parametrize(("name", "target"), thin(EVERY))
def test_it_sends_the_counted_bytes(name, target):
    def key(found: Collective) -> tuple[str, int]:
        # A schedule has the devices that a permutation's pairs join, and a count those of the axis.
        return found.kind, 0 if found.kind == "collective-permute" else found.group

    sent: dict[tuple[str, int], int] = {}
    for event, times in schedule.every(read(name, target)):
        if isinstance(event, Send):
            sent[key(event.collective)] = sent.get(key(event.collective), 0) + times * event.collective.bytes
    counted: dict[tuple[str, int], int] = {}
    for each in collective_counts.count(parse(cases.text(cases.BY_NAME[name], target)), MESH):
        counted[key(each)] = counted.get(key(each), 0) + each.bytes
    assert sent == counted
    assert sum(sent.values()) > 0


@pytest.mark.parametrize(("name", "target"), thin(EVERY))
def test_every_product_is_counted_and_every_wait_has_its_message(name, target):
    events = read(name, target)
    flops = sum(event.flops * times for event, times in schedule.every(events) if isinstance(event, Cost))
    counted = operations.count(parse(cases.text(cases.BY_NAME[name], target)))
    assert flops > 0
    if counted is not None:  # without library calls
        assert flops == pytest.approx(counted, rel=0.01)
    assert unmatched(events) == []


def unmatched(events: tuple[schedule.Event, ...]) -> list[str]:
    """Waits without a message, and messages without a wait."""
    begun, wrong = set[str](), []
    for event in events:
        if isinstance(event, Send):
            begun.add(event.name)
        elif isinstance(event, Wait):
            wrong += [] if event.name in begun else [event.name]
            begun.discard(event.name)
        elif isinstance(event, Loop):
            wrong += unmatched(event.events)
    return [*wrong, *begun]


def test_a_message_hides_behind_the_work_between_its_ends():
    sent = Send("m", message(3000), 1)  # three seconds
    hidden = schedule.times((sent, spent(4.0), Wait("m")), one_second)
    assert (hidden.work_s, hidden.communication_s, hidden.scheduled_s) == (4.0, 3.0, 4.0)
    partly = schedule.times((sent, spent(1.0), Wait("m"), spent(3.0)), one_second)
    assert partly.scheduled_s == 6.0
    bare = schedule.times((sent, Wait("m"), spent(4.0)), one_second)
    assert bare.scheduled_s == bare.bare_s == 7.0
    assert bare.hidden_s == 4.0


def test_work_is_slower_while_a_message_travels_and_never_slower_than_without_overlap():
    sent = Send("m", message(3000), 1)  # three seconds

    def step(work_s: float) -> float:
        return schedule.times((sent, spent(work_s), Wait("m")), one_second, overlap=0.5).scheduled_s

    assert [step(1.0), step(2.0), step(4.0)] == pytest.approx([3.0, 3.0, 5.0])  # of four, two take three seconds
    assert schedule.times((sent, Wait("m"), spent(4.0)), one_second, overlap=0.5).scheduled_s == 7.0


def test_a_link_carries_one_message_at_a_time_and_a_loop_hides_nothing_across_turns():
    two = (Send("a", message(2000), 1), Send("b", message(2000), 1), spent(1.0), Wait("a"), Wait("b"))
    assert schedule.times(two, one_second).scheduled_s == 4.0
    loop = (Loop(5, (Send("a", message(), 1), spent(0.5), Wait("a")), known=True),)
    times = schedule.times(loop, one_second)
    assert (times.work_s, times.communication_s, times.scheduled_s) == (2.5, 5.0, 5.0)


@pytest.mark.parametrize(("name", "target"), thin(EVERY))
def test_a_slower_link_is_never_a_shorter_step(name, target):
    events, found = read(name, target), network.of(targets.parse(target))
    before = schedule.times(events, found.seconds)
    after = schedule.times(events, lambda *about: 3 * found.seconds(*about))
    assert after.scheduled_s >= before.scheduled_s
    assert after.hidden_s >= before.hidden_s
    assert before.hidden_s <= before.scheduled_s * (1 + 1e-9)
    assert before.scheduled_s <= before.bare_s * (1 + 1e-9)


def test_messages_among_other_devices_keep_their_arrays():
    reduce = message(8_000_000)
    assert schedule.among(reduce, 2).wire_bytes == 8_000_000  # 2 (n - 1) / n
    assert schedule.among(reduce, 1024).bytes == 8_000_000
    assert schedule.among(reduce, 1).wire_bytes == 0
    scatter = message(1_000_000, "reduce-scatter")  # an eighth of 8 MB
    assert schedule.among(scatter, 4).bytes == 2_000_000
    assert schedule.among(scatter, 4).wire_bytes == 6_000_000
    part = Send("m", message(1000, group=2), 1)  # along another axis: stays
    assert schedule.regrouped((part,), 8, 64) == (part,)


SLICED = """HloModule m, is_scheduled=true

%fused (a: f32[1000,10], i: s32[]) -> f32[1,10] {
  %a = f32[1000,10]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %picked = f32[1,10]{1,0} dynamic-slice(%a, %i, %zero), dynamic_slice_sizes={1,10}
}

ENTRY %main (p: f32[1000,10], q: s32[]) -> f32[1,10] {
  %p = f32[1000,10]{1,0} parameter(0)
  %q = s32[] parameter(1)
  ROOT %f = f32[1,10]{1,0} fusion(%p, %q), kind=kLoop, calls=%fused
}
"""


def test_a_slice_moves_what_it_touches():
    (cost,) = schedule.read(SLICED, {}, CHIP)
    assert cost == Cost(seconds=84e-9, how="memory", bytes=84)  # 40 read, 40 written, and the index


PRODUCT = """HloModule m, is_scheduled=true

ENTRY %main (p: bf16[64,128], q: bf16[128,32]) -> bf16[64,32] {
  %p = bf16[64,128]{1,0} parameter(0)
  %q = bf16[128,32]{1,0} parameter(1)
  ROOT %d = bf16[64,32]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}CYCLES
}
"""


def test_a_product_takes_the_longer_of_its_flops_and_bytes_or_the_compilers_cycles():
    flops, moved = 2 * 64 * 128 * 32, 2 * (64 * 128 + 128 * 32 + 64 * 32)
    (memory_bound,) = schedule.read(PRODUCT.replace("CYCLES", ""), {}, CHIP)
    assert memory_bound == Cost(seconds=moved / 1e9, how="roofline", flops=flops, bytes=moved, large_s=flops / 1e12)
    fast = dataclasses.replace(CHIP, memory_bytes_per_s=1e15)
    (compute_bound,) = schedule.read(PRODUCT.replace("CYCLES", ""), {}, fast)
    assert compute_bound.seconds == flops / 1e12
    cycles = PRODUCT.replace("CYCLES", ', backend_config={"estimated_cycles":"3000"}')
    (told,) = schedule.read(cycles, {}, dataclasses.replace(CHIP, clock_hz=1.5e9))
    assert (told.seconds, told.how) == (2e-6, "cycles")


def test_a_librarys_product_and_an_unknown_kernel():
    gemm = PRODUCT.replace(
        "dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}CYCLES",
        'custom-call(%p, %q), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":'
        '{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}',
    )
    (cost,) = schedule.read(gemm, {}, CHIP)
    assert (cost.flops, cost.how) == (2 * 64 * 128 * 32, "roofline")
    scratch = gemm.replace("%d = bf16[64,32]{1,0} custom", "%d = (bf16[64,32]{1,0}, s8[33554432]{0}) custom")
    assert scratch != gemm
    assert schedule.read(scratch, {}, CHIP) == (cost,)  # a workspace is not traffic
    kernel = PRODUCT.replace(
        "dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}CYCLES",
        'custom-call(%p, %q), custom_call_target="my_kernel"ESTIMATE',
    )
    (cost,) = schedule.read(kernel.replace("ESTIMATE", ""), {}, CHIP)
    assert (cost.how, cost.name) == ("unknown", "my_kernel")
    estimate = ', backend_config={"cost_estimate":{"flops":"5000000000"}}'
    (cost,) = schedule.read(kernel.replace("ESTIMATE", estimate), {}, CHIP)
    assert (cost.how, cost.seconds) == ("kernel", 5e9 / 5e11)


ATTENTION = """HloModule m, is_scheduled=true

ENTRY %main (p: s32[4], q: bf16[2,8,256,128]) -> bf16[2,8,256,128] {
  %p = s32[4]{0} parameter(0)
  %q = bf16[2,8,256,128]{3,2,1,0} parameter(1)
  ROOT %splash_mha_fwd_residuals.1 = bf16[2,8,256,128]{3,2,1,0} custom-call(%p, %q, %q, %q), custom_call_target="CALL"
}
"""


def test_attention_kernels_count_by_their_shapes():
    """Two products of positions by positions forward, five backward, half of each masked, at attention's rate."""
    product = 2 * 2 * 8 * 256 * 256 * 128 / 2
    text = ATTENTION.replace("CALL", "tpu_custom_call")
    (cost,) = schedule.read(text, {}, dataclasses.replace(CHIP, memory_bytes_per_s=1e15))
    assert (cost.how, cost.flops, cost.seconds) == ("kernel", 2 * product, 2 * product / 5e11)
    (backward,) = schedule.read(text.replace("splash_mha_fwd_residuals", "splash_mha_dkv_no_residuals"), {}, CHIP)
    assert backward.flops == 5 * product
    triton = text.replace("splash_mha_fwd_residuals", "pallas_call")
    triton = triton.replace('custom_call"', 'x", backend_config={name = "NAME"}').replace(
        "[2,8,256,128]", "[2,256,8,128]"
    )  # a GPU's kernel has positions before heads
    found = {name: schedule.read(triton.replace("NAME", name), {}, CHIP)[0] for name in ("mha_forward", "mha_backward")}
    assert [cost.flops for cost in found.values()] == [2 * product, 5 * product]
    (other,) = schedule.read(triton.replace("NAME", "mha_preprocess_backward"), {}, CHIP)
    assert other.how == "unknown"


PARTS = """HloModule m, is_scheduled=true

ENTRY %main (q: bf16[1,512,2,64], k: bf16[3,1,512,2,64]) -> bf16[3,1,512,2,64] {
  %q = bf16[1,512,2,64]{3,2,1,0} parameter(0)
  %k = bf16[3,1,512,2,64]{4,3,2,1,0} parameter(1)
  %pallas_call.1 = (bf16[1,512,2,64]{3,2,1,0}, f32[1,2,512]{2,1,0}) custom-call(%q, %k, %k), custom_call_target="x", backend_config={name = "mha_forward"}, metadata={op_name="unmasked_attention/"
  ROOT %pallas_call.2 = (bf16[3,1,512,2,64]{4,3,2,1,0}, bf16[3,1,512,2,64]{4,3,2,1,0}) custom-call(%q, %k, %k), custom_call_target="x", backend_config={name = "mha_backward"}, metadata={op_name="unmasked_attention/"
}
"""  # noqa: E501 - one instruction, one line


def test_a_gpus_kernel_may_have_more_keys_than_queries_and_may_be_mapped_over_sets_of_keys():
    """As for parts of a ring: queries of four heads are positions of one."""
    product = 2 * 2 * 512 * 64 * 512
    forward, backward = schedule.read(PARTS, {}, CHIP)
    assert (forward.flops, backward.flops) == (2 * product, 3 * 5 * product)
    longer = PARTS.replace("bf16[3,1,512,2,64]{4,3,2,1,0} parameter", "bf16[1,2048,2,64]{3,2,1,0} parameter")
    assert schedule.read(longer, {}, CHIP)[0].flops == 4 * 2 * product


BROKEN = r"""tpu_custom_call", frontend_attributes={kernel_metadata={
"xprof_metadata":"{\"block_q\": 512}"
}}, metadata={op_name="unmasked_attention/"""


def test_a_part_without_a_mask_is_known_where_metadata_breaks_the_line_of_a_tpus_kernel():
    """As libtpu prints it. Without the last part, its products would count as half masked."""
    text = ATTENTION.replace('CALL"', BROKEN + '"}')
    (cost,) = schedule.read(text, {}, CHIP)
    assert (cost.how, cost.flops) == ("kernel", 2 * 2 * 2 * 8 * 256 * 256 * 128)
    module = parse(text)
    assert [*module.instructions] == ["p", "q", "splash_mha_fwd_residuals.1"] and module.roots == {
        module.entry: "splash_mha_fwd_residuals.1"
    }


def test_a_gpus_rates_are_what_was_measured_and_a_tpus_are_its_peaks():
    """Products, attention and memory at the shares of `ceilings.csv`, each below the peak."""
    for name in ("a100:8", "h100:8", "h200:8", "b200:8"):
        kind = targets.parse(name).device_kind
        chip, peak = work.chip(kind), hardware.find(kind)
        product, attention = (hardware.ceiling(peak.name, f"{each}_share") for each in ("product", "attention"))
        assert 0.5 < product < 1.0 and 0.1 < attention < product
        assert dict(chip.products)["bfloat16"] == pytest.approx(product * chip.peak_flop_per_s)
        assert chip.attention_flop_per_s == pytest.approx(attention * chip.peak_flop_per_s)
        memory = hardware.ceiling(peak.name, "memory_share")
        assert chip.memory_bytes_per_s == pytest.approx((memory or 1.0) * peak.memory_bytes_per_s)
    tpu = work.chip(targets.parse("v5e:2x4").device_kind)
    assert dict(tpu.products)["bfloat16"] == tpu.peak_flop_per_s
    assert tpu.attention_flop_per_s == tpu.peak_flop_per_s / 2
