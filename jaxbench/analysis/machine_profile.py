# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The machine profile, machine.json: measured peaks, launch costs, alpha and beta.

It contains only rows that passed every gate. Links may be oversubscribed and are then marked.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from jaxbench.analysis import alpha_beta, points, roofline, run_rows
from jaxbench.analysis.alpha_beta import AlphaBetaFit
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.records import identity
from jaxbench.records.documents import decode, sealed, unsealed
from jaxbench.records.machine_profile import CopyRate, LaunchCost, LinkFit, MachineProfile, Peak
from jaxbench.records.manifest import Machine, Manifest
from jaxbench.records.reading import read_json
from jaxbench.statistics import bootstrap, paired_ratio
from jaxbench.statistics.bootstrap import Estimate

SCHEMA = 1
NAME = "machine.json"
FACTS = ("platform", "device_kind", "devices", "cores", "cpu_model", "memory_bytes", "cache_bytes", "identity")
_LISTS = {  # the lists of a profile, and the fields that each entry must have
    "peaks": ("quantity", "dtype", "platform", "cores", "level", "value", "hi", "op"),
    "launch": ("op", "impl", "platform", "cores", "value"),
    "links": ("op", "dtype", "devices", "oversubscribed", "alpha_s", "beta_bytes_per_s"),
    "transfers": ("op", "source", "target", "payload_bytes", "value"),
}
DOUBTS = {
    "hardly faster": "{what} is hardly faster than on one: the machine was busy, or its cores are shared",
    "above itself": "{what} reached {times:.1f} times its own peak in some rounds",
}
AGAIN = "run 'jaxbench machine' again"
IDLE = f"{{doubt}}; {AGAIN} while the machine is idle."
REMAKE = f"delete it or {AGAIN}."
ANOTHER = "it is from another machine ({how})."
SPEED = (
    "The machine ran a reference product {times:.1f} times {faster} in this run than for its profile, so shares of the "
    "profile's peaks are too {size}."
)
BUSY = 1.5  # if an interval reaches this many times its peak, the machine was busy
SCALES = 1.2  # matrix products on all cores should be at least this many times as fast as on one


def build(runs: list[RunFolder]) -> MachineProfile:
    """Makes the profile from finished runs of one machine: of matmul, stream, dispatch, collectives and transfer.

    Raises UserError: there is no run, a run is damaged or of steps, or the runs are of different machines.
    """
    if not runs:
        raise UserError("a machine profile needs at least one run: give the folders of 'jaxbench run matmul', ...")
    profile: MachineProfile = {
        "schema": SCHEMA,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    first = runs[0].manifest()
    profile["machine"] = cast(Machine, {name: value for name, value in first.items() if name in FACTS})
    profile["machine"]["versions"] = first.get("versions", {})
    profile["made_of"] = [run.manifest().get("started", "") for run in runs]  # so that no peak judges its own run
    profile |= {"peaks": [], "launch": [], "links": [], "transfers": []}
    for run in runs:
        manifest = run.manifest()
        if why := matches(profile, manifest):
            raise UserError(f"'{run.path}' and '{runs[0].path}' were measured on different machines: {why}")
        # Without a profile: an older one must not judge the runs that replace it.
        rows = run_rows.analyse(
            points.load_cases(run), manifest=manifest, machine=None, spread=bootstrap.read_spread(run.path)
        )
        _add(profile, run.path.name, str(manifest["plan"].get("view", "")), rows)
    return cast(MachineProfile, sealed(profile))


def _add(profile: MachineProfile, run: str, view: str, rows: list[Row]) -> None:
    """Adds what the rows of one run show to the profile: peaks, links or launch costs."""
    # A peak bounds later runs, so one wrong row here would pass impossible numbers there.
    good = [row for row in rows if row.quotable]
    if view == "matmul":
        profile["peaks"] += _peaks(run, "flop_per_s", good, lambda row: row.point.flops, lambda row: "")
    elif view == "stream":
        cache = profile["machine"]["cache_bytes"]  # the processor's

        def level(row: Row) -> str:
            return roofline.memory_level(row.point.bytes_moved or 0, cache if row.point.platform == "cpu" else None)

        profile["peaks"] += _peaks(run, "bytes_per_s", good, lambda row: row.point.bytes_moved, level)
    elif view == "dispatch":
        for row in good:  # seconds per call
            facts = {name: getattr(row.point, name) for name in ("op", "impl", "platform", "cores", "point")}
            numbers = {**_numbers("", row.timing.step_s), "rounds": row.timing.rounds}
            profile["launch"].append(cast(LaunchCost, {**facts, "run": run, **numbers}))
    elif view == "collectives":
        links = [_link(run, fit) for fit in alpha_beta.fit_all(rows) if not fit.why_not]
        # Links within one process are measured better by a run of a single process.
        between = [link for link in links if (link["group_processes"] or 1) > 1]
        profile["links"] = _replaced(profile["links"], between or links)
    elif view == "transfer":
        # Bytes per second at the largest payload of each pair: small ones show latency.
        ascending = sorted(good, key=lambda row: row.point.payload_bytes or 0)
        for row in {(row.point.op, row.point.source, row.point.target): row for row in ascending}.values():
            facts = {name: getattr(row.point, name) for name in ("op", "source", "target", "payload_bytes")}
            rate = row.timing.step_s.under(float(row.point.payload_bytes or 0))
            numbers = {**_numbers("", rate), "rounds": row.timing.rounds}
            profile["transfers"].append(cast(CopyRate, {**facts, **numbers, "point": row.point_id, "run": run}))


def _peaks(
    run: str, quantity: str, rows: list[Row], work: Callable[[Row], float | None], level: Callable[[Row], str]
) -> list[Peak]:
    """The best row of each (dtype, platform, cores, level), as an entry. Its "again" is the rate on the rounds that did
    not select it.

    A peak should bound what was measured. So if a row reached a higher rate over all of its rounds, that rate counts.
    """
    groups: dict[tuple[str, str, int | None, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.point.dtype, row.point.platform, row.point.cores, level(row)), []).append(row)
    entries = []
    for (dtype, platform, cores, where), group in groups.items():
        best = paired_ratio.best(group, work)
        if best is None:
            continue
        fastest = max(group, key=lambda row: (work(row) or 0) / row.timing.step_s.value)
        again, reached = best.rate.value, fastest.timing.step_s.under(work(fastest) or 0)
        if reached.value > again:
            note = f"the fastest of {len(group)} on all rounds"
            best = paired_ratio.Best(row=fastest, rate=reached, rounds=fastest.timing.rounds, note=note)
        p = best.row.point
        facts = {"quantity": quantity, "dtype": dtype, "platform": platform, "cores": cores, "level": where}
        which = {"op": p.op, "impl": p.impl, "shape": p.shape, "elements": p.elements, "point": p.point, "run": run}
        found = {"again": again, "rounds": best.rounds, "note": best.note}
        entries.append(cast(Peak, {**facts, **which, **_numbers("", best.rate), **found}))
    return entries


def _link(run: str, fit: AlphaBetaFit) -> LinkFit:
    """An entry with alpha and beta. Its bus_bytes_per_s is beta as bus bandwidth; None for one device."""
    names = ("op", "dtype", "devices", "mesh", "axis", "oversubscribed", "group_processes", "group_hosts")
    facts = {name: getattr(fit.point, name) for name in names}
    bus = fit.beta_bytes_per_s.value * fit.bus_factor
    link = {
        **facts,
        **_numbers("alpha_s", fit.alpha_s),
        **_numbers("beta_bytes_per_s", fit.beta_bytes_per_s),
        "bus_bytes_per_s": bus if math.isfinite(bus) else None,
        "misfit": fit.misfit,
        "run": run,
    }
    return cast(LinkFit, link)


def with_links(profile: MachineProfile, newer: MachineProfile) -> MachineProfile:
    """A profile with the links of a newer profile of the same machine. They replace its links of the same groups."""
    links = _replaced(profile["links"], newer["links"])
    whole = {**profile, "links": links, "made_of": [*profile["made_of"], *newer["made_of"]]}
    return cast(MachineProfile, sealed(whole))


def _replaced(links: list[LinkFit], newer: list[LinkFit]) -> list[LinkFit]:
    """The links, with newer fits in place of older ones of the same group."""
    groups = {_group(link) for link in newer}
    return [link for link in links if _group(link) not in groups] + newer


def _group(link: LinkFit) -> tuple[object, ...]:
    """The operation and the group of a link. Links of older profiles are within one process."""
    where = tuple(link.get(name) for name in ("op", "dtype", "devices", "mesh", "axis"))
    return (*where, link.get("group_processes") or 1, link.get("group_hosts") or 1)


def _numbers(name: str, value: Estimate) -> dict[str, float | None]:
    """{"value", "lo", "hi"}, or {name, name_lo, name_hi} for a name; lo and hi are None without an interval."""
    keys = (name, f"{name}_lo", f"{name}_hi") if name else ("value", "lo", "hi")
    ends = (value.lo, value.hi) if value.has_interval else (None, None)
    return dict(zip(keys, (value.value, *ends), strict=True))


def read(path: Path) -> MachineProfile | None:
    """The profile; None without a file. Raises UserError if it is damaged or of another schema."""
    if not path.exists():
        return None
    return read_json(path, _checked, REMAKE)


def _checked(value: object) -> MachineProfile:
    """The content of a profile file. Raises ValueError or UserError for a damaged or older one."""
    profile = decode(dict[str, Any], value)
    if profile.get("schema") != SCHEMA:
        reason = f"a {NAME} has schema {profile.get('schema')}, this jaxbench reads schema {SCHEMA}"
        raise UserError(f"{reason}: run 'jaxbench machine' again.")
    unsealed(profile)
    if not isinstance(profile.get("made_of"), list) or not isinstance(profile.get("machine"), dict):
        raise ValueError("it does not say from which runs it was made, and on which machine")
    for name, fields in _LISTS.items():
        for number, entry in enumerate(decode(tuple[dict[str, Any], ...], profile.get(name)), start=1):
            if missing := [field for field in fields if field not in entry]:
                raise ValueError(f"entry {number} of its {name} has no {missing[0]}")
            for field in {"value", "alpha_s", "beta_bytes_per_s"} & entry.keys():
                value = entry[field]
                # Others are divided by peaks.
                if not isinstance(value, int | float) or not 0 <= value < math.inf or (name == "peaks" and not value):
                    raise ValueError(f"entry {number} of its {name} has {field} {value!r}")
    return decode(MachineProfile, profile)


def doubts(profile: MachineProfile) -> list[str]:
    """Sentences on why the profile should be made again; [] for a good profile."""
    sentences = []
    for peak in profile["peaks"]:
        cores = f"{peak['cores']} core{'s' * (peak['cores'] != 1)}"
        # The cores of an accelerator's peak are its host's, which only start the work.
        what = f"{peak['dtype']} {peak['op']} on {cores if peak['platform'] == 'cpu' else peak['platform']}"
        same = [p for p in profile["peaks"] if all(p[n] == peak[n] for n in ("quantity", "dtype", "platform", "level"))]
        one_core = [p["value"] for p in same if p["cores"] == 1 < (peak["cores"] or 0)]
        # Only products: memory bandwidth may be exhausted by one core.
        if peak["quantity"] == "flop_per_s" and one_core and peak["value"] < SCALES * max(one_core):
            sentences.append(DOUBTS["hardly faster"].format(what=what))
        elif peak["hi"] is not None and peak["hi"] > BUSY * peak["value"]:
            sentences.append(DOUBTS["above itself"].format(what=what, times=peak["hi"] / peak["value"]))
    return [IDLE.format(doubt=sentence) for sentence in sentences]


def matches(profile: MachineProfile, manifest: Manifest) -> str:
    """A sentence on how the profile's machine differs from the machine of `manifest`; "" if it is the same.

    Another kernel does not count as another machine, because the peaks stay the same.
    """
    found = identity.hardware(profile["machine"], manifest)
    return ANOTHER.format(how=identity.sentence(found)) if found else ""


def at_speed_of(profile: MachineProfile | None, manifest: Manifest) -> MachineProfile | None:
    """The profile for a run of `manifest`: with `faster` if the machine was faster in the run. Its peaks are then the
    peaks of a slowed machine, which the run may exceed."""
    faster = identity.slower(manifest, profile["machine"]) if profile is not None else 1.0
    return {**profile, "faster": faster} if profile is not None and faster > 1 + identity.SAME_SPEED else profile


def speed_note(profile: MachineProfile, manifest: Manifest) -> str:
    """A sentence if the machine ran at another speed when the profile was made; "" otherwise."""
    if not identity.other_speed(profile["machine"], manifest):
        return ""
    times = identity.slower(profile["machine"], manifest)
    faster, size = ("slower", "small") if times > 1 else ("faster", "large")
    return SPEED.format(times=max(times, 1 / times), faster=faster, size=size)
