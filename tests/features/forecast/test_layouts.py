# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Copies to the host, the bubble of a pipeline, and bounds of programs with plain attention, in forecasts."""

from __future__ import annotations

import dataclasses
import io

import pytest
from fabricate_forecasts import at, in_kernels
from rich.console import Console

from jaxbench.catalog import targets
from jaxbench.core.schema import Collective
from jaxbench.features.forecast import estimate, forecasts, page, schedule, work
from jaxbench.features.forecast.schedule import Copy, Loop, Send, Wait
from jaxbench.features.forecast.work import Chip, Cost
from jaxbench.hlo import collective_counts
from jaxbench.hlo.module import parse
from jaxbench.measure.compile_report import without_source_lines
from jaxbench.measure.expected_communication import StepFacts, verify

CHIP = Chip(
    memory_bytes_per_s=1e9, products=(("bfloat16", 1e12),), peak_flop_per_s=2e12, attention_flop_per_s=5e11,
    host_bytes_per_s=1e6,
)  # fmt: skip
OFFLOADED = """\
HloModule offloaded

ENTRY %main (p: f32[1000]) -> f32[1000] {
  %p = f32[1000]{0} parameter(0)
  %out = (f32[1000]{0:S(5)}, f32[1000]{0}, u32[]) copy-start(%p)
  %near = (f32[1000]{0:S(1)}, f32[1000]{0}, u32[]) copy-start(%p)
  %there = f32[1000]{0:S(5)} copy-done(%out)
  %back = f32[1000]{0} copy(%there)
  ROOT %sum = f32[1000]{0} add(%p, %back)
}
"""


SLICES = """\
HloModule slices

ENTRY %main (p: bf16[8,128]) -> bf16[8,128] {
  %p = bf16[8,128]{1,0} parameter(0)
  %inside = bf16[8,128]{1,0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add
  %go = token[] after-all()
  %recv = (bf16[8,128]{1,0}, u32[], token[]) recv(%go), channel_id=1, is_host_transfer=true, frontend_attributes={ABOUT}
  %send = (bf16[8,128]{1,0}, u32[], token[]) send(%inside, %go), channel_id=2, frontend_attributes={ABOUT}
  %sent = token[] send-done(%send), channel_id=2, frontend_attributes={ABOUT}
  %done = (bf16[8,128]{1,0}, token[]) recv-done(%recv), channel_id=1, frontend_attributes={ABOUT}
  ROOT %all = bf16[8,128]{1,0} get-tuple-element(%done), index=0
}
"""
ABOUT = (
    '_xla_host_transfer_handler_name="xla_megascale_runtime",_xla_host_transfer_rendezvous="all-reduce.1_0",'
    '_xla_megascale_target="{1,2}x{0:3}",_xla_megascale_transfer_type="ALL_REDUCE"'
)
ACROSS = "data between slices"
# What the TPU's compiler writes instead of ABOUT for an exchange among all devices, and for a ring that goes on in the
# next slice.
EXCHANGE = (
    '_xla_host_transfer_rendezvous="all_to_all.1_0",_xla_megascale_target={{100000,100001,100003,100002,200000,200001,'
    '200003,200002}},_xla_megascale_transfer_type="ALL_TO_ALL"'
)
RING = (
    '_xla_host_transfer_rendezvous="ppermute.1_0",_xla_megascale_target={{100002->200000},{200002->100000}},'
    '_xla_megascale_transfer_type="ONE_TO_ONE"'
)


def spent(seconds: float) -> Cost:
    return Cost(seconds=seconds, how="memory")


def test_copies_to_the_host_are_read_and_those_between_a_chips_memories_are_not():
    events = schedule.read(OFFLOADED, {}, CHIP)
    copies = [event for event in events if isinstance(event, Copy)]
    assert [(copy.name, copy.bytes, copy.seconds) for copy in copies] == [("out", 4000, 0.004), ("back", 4000, 0.004)]
    waits = [event.name for event in events if isinstance(event, Wait)]
    assert [name for name in waits if name in ("out", "back")] == ["out", "back"]
    times = schedule.times(events, lambda *_: 0.0)
    assert times.host_s == pytest.approx(0.008)
    assert times.scheduled_s == pytest.approx(0.008 + times.work_s)
    unknown = schedule.read(OFFLOADED, {}, dataclasses.replace(CHIP, host_bytes_per_s=None))
    assert [event.seconds for event in unknown if isinstance(event, Copy)] == [0.0, 0.0]


def test_what_slices_send_to_each_other_is_a_collective_over_the_first_axis():
    text, mesh = SLICES.replace("ABOUT", ABOUT), {"data": 2, "fsdp": 4}
    found = {(each.kind, each.axis, each.group): each.bytes for each in collective_counts.count(parse(text), mesh)}
    assert found == {("all-reduce", ACROSS, 2): 2048, ("all-reduce", "fsdp", 4): 2048}
    sent = [event for event in schedule.read(text, mesh, CHIP) if not isinstance(event, Wait)]
    assert [(event.collective.axis, event.collective.group, event.stride) for event in sent] == [
        ("fsdp", 4, 1), (ACROSS, 2, 4)
    ]  # fmt: skip
    waits = [event.name for event in schedule.read(text, mesh, CHIP) if isinstance(event, Wait)]
    assert waits == ["inside", "all-reduce.1_0"]
    text = SLICES.replace("ABOUT", ABOUT)
    assert [each.axis for each in collective_counts.count(parse(text), {"data": 8})] == ["data", ACROSS]


@pytest.mark.parametrize(
    ("about", "axis", "kind", "spans", "group", "stride"),
    [
        (EXCHANGE, "expert", "all-to-all", "expert", 8, 1),
        (RING, "context", "collective-permute", "context between slices", 2, 4),
    ],
)
def test_exchanges_and_rings_over_slices_are_counted_and_take_time(about, axis, kind, spans, group, stride):
    text, mesh = SLICES.replace("ABOUT", about), {axis: 8}
    found = {each.kind: each for each in collective_counts.count(parse(text), mesh)}[kind]
    assert (found.axis, found.group, found.bytes) == (spans, group, 2048)
    sent = {event.collective: event.stride for event in schedule.read(text, mesh, CHIP) if isinstance(event, Send)}
    assert sent[found] == stride


def test_what_slices_send_in_a_loop_counts_once_per_turn():
    header, entry = SLICES.replace("ABOUT", ABOUT).split("ENTRY %main")
    loop = """\
%more (q: bf16[8,128]) -> pred[] {
  ROOT %yes = pred[] constant(true)
}
ENTRY %main (o: bf16[8,128]) -> bf16[8,128] {
  %o = bf16[8,128]{1,0} parameter(0)
  ROOT %w = bf16[8,128]{1,0} while(%o), condition=%more, body=%body, backend_config={"known_trip_count":{"n":"3"}}
}
"""
    module = parse(f"{header}%body{entry}\n{loop}")
    counted = {each.axis: each.bytes for each in collective_counts.count(module, {"data": 2, "fsdp": 4})}
    assert counted == {ACROSS: 3 * 2048, "fsdp": 3 * 2048}


def within(kind: str, elements: int, group: int, axis: str = "data") -> Collective:
    return Collective(kind=kind, count=1, bytes=4 * elements, elements=elements, axis=axis, group=group)


# mlp with 25,450 parameters and two metrics under jit_auto on v5e:2x2x2, as the TPU's compiler divides the sum of its
# gradients (`slices-jit_auto` of compiled_cases).
SUM_OF_SLICES = (
    within("all-gather", 25_408, 4), within("all-reduce", 6_396, 2, ACROSS), within("all-reduce", 25_452, 4),
)  # fmt: skip


def test_a_sum_within_slices_and_between_them_is_the_sum_that_is_expected():
    step, form = StepFacts(devices=8, platform="tpu", metrics=2, sizes=(8,)), {"all-reduce": (25_450, 25_450)}
    assert verify(collective_counts.flat(SUM_OF_SLICES), form, step).ok
    assert not verify(SUM_OF_SLICES, form, step).ok
    for place, wrong in ((0, 25_408 - 16), (1, 6_396 - 10), (2, 25_452 - 10), (0, 50_816)):
        sums = [*SUM_OF_SLICES]
        sums[place] = dataclasses.replace(sums[place], elements=wrong)
        assert not verify(collective_counts.flat(sums), form, step).ok
    whole = (within("all-reduce", 100, 2), within("all-gather", 100, 4, "fsdp"))
    assert collective_counts.flat(whole) == whole  # no axis spans slices and goes on within them
    assert len(collective_counts.flat((*SUM_OF_SLICES, within("all-to-all", 9, 2, "expert")))) == 2


def test_parts_that_are_filled_up_to_tiles_are_gathered_as_parts_of_a_sum():
    """gpt tiny under hybrid with data=4,fsdp=2 on v5e:2x2x2: 421,248 numbers of gradients and two metrics. Its small
    gradients, 2,688 numbers, are summed together and gathered as 4,096."""
    found = (
        within("all-gather", 422_656, 2), within("all-reduce", 211_330, 2, ACROSS), within("all-reduce", 2, 4),
        dataclasses.replace(within("all-reduce", 101_760, 2), count=9), within("reduce-scatter", 159_744, 2),
    )  # fmt: skip
    parameters = within("all-gather", 1_625_600, 2, "fsdp")
    one, other = collective_counts.flat((*found, parameters))
    assert (one.kind, one.elements, other) == ("all-reduce", 421_250, parameters)


def test_a_sum_over_slices_and_an_axis_within_them_is_one_sum():
    """gpt with 28,032 parameters and two metrics over data=2,context=4, and with experts over data=2,expert=4, as the
    compiler divides them for v5e:2x2x2 (`slices-data2-context4` and `slices-data2-expert4` of compiled_cases)."""
    ring = within("collective-permute", 163_840, 4, "context")
    sums = (
        within("all-gather", 27_328, 4, "context"), within("all-reduce", 28_034, 4, "context"),
        within("all-reduce", 7_538, 2, ACROSS), ring,
    )  # fmt: skip
    numbers = [(each.kind, each.elements) for each in collective_counts.flat(sums) if each.elements]
    assert numbers == [("all-reduce", 28_034), ("collective-permute", 163_840)]
    experts = (
        within("all-gather", 11_456, 4, "expert"), within("all-reduce", 11_847, 4, "expert"),
        within("all-reduce", 36_663, 2, ACROSS),
    )  # fmt: skip
    assert [each.elements for each in collective_counts.flat(experts)] == [11_847, 33_408]  # 33,408 of experts
    too_few = (*sums[:2], within("all-reduce", 7_000, 2, ACROSS))
    assert collective_counts.flat(too_few) == too_few
    # gpt "small" with two blocks: 16,898 small numbers fill 17 tiles, and their four parts 20.
    filled = (
        dataclasses.replace(within("all-gather", 53_600_768, 4, "context"), count=13),
        dataclasses.replace(within("all-reduce", 53_597_186, 4, "context"), count=13),
        dataclasses.replace(within("all-reduce", 13_400_192, 2, ACROSS), count=13),
    )
    assert [each.elements for each in collective_counts.flat(filled) if each.elements] == [53_597_186]
    dropped = (*filled[:2], dataclasses.replace(filled[2], elements=13_400_192 - 576))
    assert collective_counts.flat(dropped) == dropped


def test_a_part_that_fills_no_tile_sends_its_border_on_within_a_slice():
    """gpt "small" with two blocks on v5e:2x2x2, over context=8 and, with four experts, over data=2,expert=4. Its 50,257
    rows of tokens make no equal parts of whole tiles, so the devices of a slice send 72 rows on."""
    border = within("collective-permute", 55_296, 4, "expert")
    experts = (
        within("all-gather", 44_161_536, 4, "expert"), within("all-reduce", 20_485_248, 2, ACROSS),
        within("all-reduce", 42_192_391, 4, "expert"), within("reduce-scatter", 491_520, 4, "expert"),
    )  # fmt: skip
    ring = 69_206_016
    rings = (
        within("all-gather", 53_600_768, 4, "context"), within("all-reduce", 42_193_922, 4, "context"),
        within("all-reduce", 13_400_192, 2, "context between slices"),
        within("reduce-scatter", 2_850_816, 4, "context"),
        within("collective-permute", ring, 2, "context between slices"),
    )  # fmt: skip
    ringed = within("collective-permute", ring + 55_296, 8, "context")
    for found, form, metrics in (
        ((*experts, border), {"all-reduce": (53_603_332,) * 2}, 3),
        ((*rings, ringed), {"all-reduce": (53_597_184,) * 2, "collective-permute": (ring, ring)}, 2),
    ):
        step = StepFacts(devices=8, platform="tpu", metrics=metrics, sizes=(2, 4))
        allowed = dataclasses.replace(step, divided=collective_counts.divided(found))
        assert verify(collective_counts.flat(found), form, allowed).ok
        again = dataclasses.replace(found[-1], elements=found[-1].elements + ring // 7)  # one more step of a ring of 8
        assert not verify(collective_counts.flat((*found[:-1], again)), form, allowed).ok
    one = (within("all-gather", 800, 4), within("all-reduce", 800, 4))
    assert collective_counts.divided(one) == 0


TILES = """\
HloModule tiles

ENTRY %main (p: f32[32,3,4,32]) -> f32[48,8,128] {
  %p = f32[32,3,4,32]{3,0,2,1:T(8,128)} parameter(0)
  %padded = f32[32,3,4,128]{3,0,2,1:T(8,128)} custom-call(%p), custom_call_target="ZeroCrop"
  %flat = f32[48,8,128]{2,1,0:T(8,128)} bitcast(%padded)
  %go = token[] after-all()
  %recv = (f32[48,8,128]{2,1,0:T(8,128)}, u32[], token[]) recv(%go), channel_id=1, frontend_attributes={ABOUT}
  %send = (f32[48,8,128]{2,1,0:T(8,128)}, u32[], token[]) send(%flat, %go), channel_id=2, frontend_attributes={ABOUT}
  %done = (f32[48,8,128]{2,1,0:T(8,128)}, token[]) recv-done(%recv), channel_id=1, frontend_attributes={ABOUT}
  ROOT %all = f32[48,8,128]{2,1,0:T(8,128)} get-tuple-element(%done), index=0
}
""".replace("ABOUT", ABOUT)


def test_slices_send_whole_tiles_and_only_the_numbers_count():
    """A part of the query, key and value projections of four heads of 32, as the TPU's compiler sends it."""
    mesh = {"data": 2, "fsdp": 4}
    (found,) = collective_counts.count(parse(TILES), mesh)
    assert (found.elements, found.bytes, found.wire_bytes) == (12_288, 4 * 12_288, 4 * 49_152)
    (event,) = (each for each in schedule.read(TILES, mesh, CHIP) if hasattr(each, "collective"))
    assert event.collective == found


def test_a_copy_hides_behind_work():
    record = dataclasses.replace(at(64), work_s=1.0, communication_s=0.25, host_s=2.0)
    assert (record.hidden_s, record.bare_s) == (2.0, 3.25), "nothing hidden includes the copies"
    events = (Copy("c", 1000, 3.0), spent(2.0), Wait("c"), spent(1.0))
    times = schedule.times(events, lambda *_: 0.0)
    assert (times.work_s, times.host_s, times.scheduled_s) == (3.0, 3.0, 4.0)
    assert (times.hidden_s, times.bare_s) == (3.0, 6.0)
    looped = schedule.times((Loop(2, events, known=True),), lambda *_: 0.0)
    assert (looped.host_s, looped.scheduled_s) == (6.0, 8.0)


def tick(*directions: float) -> tuple[Cost | Send | Wait, ...]:
    """A tick of a pipeline: work of some seconds in each direction, and a message in each."""
    sent = within("collective-permute", 100, 4, "stage")
    return tuple(event for i, each in enumerate(directions) for event in (spent(each), Send(f"s{i}", sent, 1)))


@pytest.mark.parametrize(("stages", "passes"), [(2, 4), (4, 4), (8, 16)])
def test_the_bubble_of_each_schedule_is_the_published_one(stages, passes):
    """(K - 1) / (M + K - 1) of all ticks, whatever a pass takes, and whether the passes share ticks or not."""
    ticks = passes + stages - 1
    gpipe = tuple(Loop(ticks, tick(each), known=True) for each in (1.0, 2.0))
    kinds = ((stages - 1, (1.0,)), (passes, (1.0, 2.0)), (stages - 1, (2.0,)))
    together = tuple(Loop(trips, tick(*each), known=True) for trips, each in kinds)
    for events in (gpipe, together):
        assert schedule.bubble_s(events, passes) / (3.0 * ticks) == pytest.approx((stages - 1) / ticks)
        assert schedule.bubble_s(events, 0) == 0.0
        slower = schedule.bubble_s(estimate._slower(events, 1.5), passes)
        assert slower == pytest.approx(1.5 * schedule.bubble_s(events, passes)) and slower > 0
    assert schedule.bubble_s((Loop(9, (spent(1.0),), known=True),), 4) == 0.0, "no tick of a pipeline"


def conditional(scope: str, branches: str) -> str:
    return f"""\
HloModule ticks
%idle (a: f32[500000000]) -> f32[500000000] {{
  ROOT %a = f32[500000000]{{0}} parameter(0)
}}
%work (b: f32[500000000]) -> f32[500000000] {{
  %b = f32[500000000]{{0}} parameter(0)
  ROOT %sum = f32[500000000]{{0}} all-reduce(%b), replica_groups={{{{0,1}}}}, to_apply=%add
}}
%again (e: f32[500000000]) -> f32[500000000] {{
  %e = f32[500000000]{{0}} parameter(0)
  ROOT %total = f32[500000000]{{0}} all-reduce(%e), replica_groups={{{{0,1}}}}, to_apply=%add
}}
%longer (f: f32[500000000]) -> f32[500000000] {{
  %f = f32[500000000]{{0}} parameter(0)
  ROOT %negate = f32[500000000]{{0}} negate(%f)
}}
ENTRY %main (p: f32[500000000]) -> f32[500000000] {{
  %p = f32[500000000]{{0}} parameter(0)
  %which = s32[] constant(1)
  ROOT %tick = f32[500000000]{{0}} conditional(%which, %p, %p), {branches}, metadata={{op_name="jit(f)/{scope}/cond"}}
}}
"""


@pytest.mark.parametrize(
    "named", ["branch_computations={%idle, %longer}", "true_computation=%idle, false_computation=%longer"]
)
def test_the_longest_branch_counts_as_often_as_its_scope_says(named):
    assert schedule.work_s(schedule.read(conditional("while", named), {}, CHIP)) == pytest.approx(4.0)
    assert schedule.work_s(schedule.read(conditional("one_in_4", named), {}, CHIP)) == pytest.approx(1.0)


SELDOM = """\
HloModule ticks
%more (a: (s32[], f32[500000000])) -> pred[] {
  ROOT %yes = pred[] constant(true)
}
%body (b: (s32[], f32[500000000])) -> (s32[], f32[500000000]) {
  %b = (s32[], f32[500000000]{0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %x = f32[500000000]{0} get-tuple-element(%b), index=1
  %negate = f32[500000000]{0} negate(%x)
  ROOT %out = (s32[], f32[500000000]{0}) tuple(%i, %negate)
}
ENTRY %main (p: (s32[], f32[500000000])) -> (s32[], f32[500000000]) {
  %p = (s32[], f32[500000000]{0}) parameter(0)
  ROOT %w = (s32[], f32[500000000]{0}) while(%p), condition=%more, body=%body, metadata={op_name="SCOPE"}
}
"""


@pytest.mark.parametrize(("scope", "work_s", "trips"), [
    ("jit(f)/while", 4.0, None), ("jit(f)/one_in_1/while", 4.0, 1), ("jit(f)/one_in_4/while", 1.0, 1),
    ("one_in_4/", 1.0, 1), ("jit(f)/one_in_4/while/body/while", 4.0, None),
    ("jit(f)/instead_of_another/while", 0.0, 0), ("instead_of_another/", 0.0, 0),
])  # fmt: skip
def test_a_loop_of_no_turn_or_of_one_counts_as_a_branch_and_one_of_several_once(scope, work_s, trips):
    text = SELDOM.replace("SCOPE", scope)
    events = schedule.read(text, {}, CHIP)
    assert schedule.work_s(events) == pytest.approx(work_s)
    assert schedule.unknown_loops(events) == (trips is None)
    module = parse(text)
    assert module.trip_count(module.instructions["w"]) == trips
    kept = without_source_lines(text)
    assert ("one_in_4/" in kept) is (scope == "jit(f)/one_in_4/while")


def test_one_of_several_branches_that_are_alike_sends():
    """A stage has a branch for each chunk of blocks, and takes one of them in a tick."""
    both = "branch_computations={%work, %again}"
    sent = [
        collective_counts.count(parse(conditional(scope, both)), {"tensor": 2})[0].count
        for scope in ("while", "alike_branches")
    ]
    assert sent == [2, 1]


def test_a_bound_of_plain_attention_is_one_of_this_program(tmp_path):
    plain = in_kernels(dataclasses.replace(at(16), attention="plain"), 1e6)
    flash = in_kernels(dataclasses.replace(at(64), attention="flash"), 1e6)
    assert (plain.grade, plain.only_plain, flash.only_plain) == ("at best", True, False)
    (bound,) = [note for note in plain.notes if "per kernel" in note]
    assert bound.endswith("a lower bound for this program with plain attention, not for the model.")
    assert not any("plain" in note for note in flash.notes)
    for records, said in (([plain, flash], True), ([flash], False)):
        forecasts.write(tmp_path, records)
        console = Console(record=True, width=160, file=io.StringIO())
        page.write(tmp_path, console)
        shown = " ".join(console.export_text().split())
        assert ("is a lower bound for this program with plain attention." in shown) is said


def test_the_page_says_where_the_time_goes(tmp_path):
    spent = {"work_s": 0.8, "bubble_s": 0.2, "scheduled_s": 1.0, "seconds_by": {"roofline": 0.6, "kernel": 0.2}}
    record = dataclasses.replace(at(64), **spent, host_bytes=2 * 10**9)
    (sentence,) = page._waterfall([record, at(16)])
    assert sentence.endswith(
        "1000 ms: products 45 %, attention and kernels that state FLOPs 15 %, idle in the pipeline 20 %, waiting for "
        "messages and the host 20 %. A device copies 2 GB to or from its host."
    )


@pytest.mark.parametrize("name", ["v5e:2x4", "v5p:2x2x2", "v6e:2x4", "a100:8", "h100:8", "h200:8", "b200:8"])
def test_every_target_has_a_link_to_its_host(name):
    chip = work.chip(targets.parse(name).device_kind)
    assert chip is not None and chip.host_bytes_per_s is not None
    assert 1e10 < chip.host_bytes_per_s < 1e11


COUNTED = """\
HloModule counted
%more (a: (s32[], f32[500000000])) -> pred[] {
  %a = (s32[], f32[500000000]{0}) parameter(0)
  %at = s32[] get-tuple-element(%a), index=0
  %end = s32[] constant(8)
  ROOT %less = pred[] compare(%at, %end), direction=LT
}
%body (b: (s32[], f32[500000000])) -> (s32[], f32[500000000]) {
  %b = (s32[], f32[500000000]{0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  COPY
  %one = s32[] constant(1)
  %next = s32[] add(%FROM, %one)
  %x = f32[500000000]{0} get-tuple-element(%b), index=1
  %negate = f32[500000000]{0} negate(%x)
  ROOT %out = (s32[], f32[500000000]{0}) tuple(%next, %negate)
}
ENTRY %main (p: f32[500000000]) -> (s32[], f32[500000000]) {
  %p = f32[500000000]{0} parameter(0)
  %zero = s32[] constant(0)
  %both = (s32[], f32[500000000]{0}) tuple(%zero, %p)
  ROOT %w = (s32[], f32[500000000]{0}) while(%both), condition=%more, body=%body
}
"""


@pytest.mark.parametrize(("copy", "source"), [("", "i"), ("%copied = s32[] copy(%i)", "copied")])
def test_a_tpus_counter_may_be_copied_before_it_is_raised(copy, source):
    module = parse(COUNTED.replace("  COPY\n", f"  {copy}\n" if copy else "").replace("FROM", source))
    assert module.trip_count(module.instructions["w"]) == 8
