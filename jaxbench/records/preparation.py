# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The preparation ledger: where the time of a run went before its first timed step, and which programs were compiled.

A worker process counts its own `Spent` for each request. The parent collects them in a `Ledger`, which becomes
`preparation` in `manifest.json`. No jax.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from jaxbench.records.documents import Count, NonNegative
from jaxbench.records.manifest import Preparation, PreparedPoint

HIT, MISS, MIXED = "hit", "miss", "mixed"
DIGITS = 4  # of the seconds in a manifest
SECONDS = ("import_s", "backend_s", "trace_s", "lower_s", "tune_s", "compile_s", "load_s", "first_run_s")


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a process spent on one request, or on its start. Seconds.

    busy_s: all of it; the others are parts of it. tune_s: None where the compiler does not tell tuning from compiling.
    compiled, loaded: programs. names: of the compiled ones.
    """

    busy_s: NonNegative = 0.0
    import_s: NonNegative = 0.0
    backend_s: NonNegative = 0.0
    trace_s: NonNegative = 0.0
    lower_s: NonNegative = 0.0
    tune_s: NonNegative | None = None
    compile_s: NonNegative = 0.0
    load_s: NonNegative = 0.0
    first_run_s: NonNegative = 0.0
    compiled: Count = 0
    loaded: Count = 0
    names: tuple[str, ...] = ()


def together(spent: Sequence[Spent]) -> Spent:
    """What the processes of a group spent on one request: the longest times, and all programs."""
    return _merged(spent, lambda seconds: max(seconds, default=0.0))


def in_turn(spent: Sequence[Spent]) -> Spent:
    """What was spent on requests that followed each other."""
    return _merged(spent, sum)


def _merged(spent: Sequence[Spent], merge: Callable[[Iterable[float]], float]) -> Spent:
    """What several processes have spent, merged by a sum or a maximum."""
    tuned = [each.tune_s for each in spent if each.tune_s is not None]
    return Spent(
        busy_s=merge(each.busy_s for each in spent),
        import_s=merge(each.import_s for each in spent),
        backend_s=merge(each.backend_s for each in spent),
        trace_s=merge(each.trace_s for each in spent),
        lower_s=merge(each.lower_s for each in spent),
        tune_s=None if len(tuned) < len(spent) else merge(tuned),
        compile_s=merge(each.compile_s for each in spent),
        load_s=merge(each.load_s for each in spent),
        first_run_s=merge(each.first_run_s for each in spent),
        compiled=sum(each.compiled for each in spent),
        loaded=sum(each.loaded for each in spent),
        names=tuple(name for each in spent for name in each.names),
    )


@dataclass
class Ledger:
    """Collects what the processes of one start spend. measured_s: wall time of timed requests."""

    spent: defaultdict[tuple[int, str], list[Spent]] = field(default_factory=lambda: defaultdict(list))
    measured_s: float = 0.0

    def add(self, number: int, point: str, spent: Spent) -> None:
        """number: of the set. point: "" for what belongs to no point, such as the start of a process."""
        self.spent[number, point].append(spent)

    @property
    def all(self) -> Spent:
        return in_turn([each for many in self.spent.values() for each in many])

    def line(self) -> str:
        """Such as "12 programs compiled, 3 loaded"; "" before the first."""
        spent = self.all
        if not spent.compiled + spent.loaded:
            return ""
        compiled = f"{spent.compiled} {'program' if spent.compiled == 1 else 'programs'} compiled"
        return f"{compiled} in {spent.compile_s:.0f} s, {spent.loaded} loaded"

    def to_json(self, *, started: str, total_s: float, note: str = "") -> Preparation:
        """note: why compiled programs are not kept."""
        spent = self.all
        preparation_s = max(0.0, total_s - self.measured_s)
        return Preparation(
            started=started,
            compiled=spent.compiled,
            loaded=spent.loaded,
            total_s=round(total_s, DIGITS),
            preparation_s=round(preparation_s, DIGITS),
            again_s=round(total_s if note else total_s - saved_s(spent, preparation_s), DIGITS),
            kept=not note,
            note=note,
            points=[_point(point, number, in_turn(many)) for (number, point), many in sorted(self.spent.items())],
        )


def saved_s(spent: Spent, preparation_s: float) -> float:
    """The wall time that the same preparation will take less, because its programs are then loaded.

    Processes compile at the same time, so the wall time of compiling is its share of all that the processes did.
    """
    if not spent.busy_s or not spent.compiled:
        return 0.0
    each_s = spent.load_s / spent.loaded if spent.loaded else 0.1 * spent.compile_s / spent.compiled
    less_s = max(0.0, spent.compile_s - spent.compiled * each_s)
    return preparation_s * min(1.0, less_s / spent.busy_s)


def _point(point: str, number: int, spent: Spent) -> PreparedPoint:
    """What one set has spent on a point, as in the manifest."""
    seconds = {name: getattr(spent, name) for name in SECONDS}
    rounded = {name: None if value is None else round(value, DIGITS) for name, value in seconds.items()}
    cache = MIXED if spent.compiled and spent.loaded else MISS if spent.compiled else HIT if spent.loaded else ""
    counts = {"compiled": spent.compiled, "loaded": spent.loaded, "programs": spent.compiled + spent.loaded}
    names = sorted(spent.names)
    return PreparedPoint(point=point, set=number, cache=cache, names=names, **counts, **rounded)  # type: ignore[typeddict-item]


def sentence(preparation: Preparation) -> str:
    """ "41 of 68 s were preparation; the same command now takes 27". "" for a start that measured nothing."""
    total_s, prepared_s = preparation.get("total_s", 0.0), preparation.get("preparation_s", 0.0)
    if not preparation.get("compiled", 0) + preparation.get("loaded", 0):
        return ""
    spent = f"{prepared_s:.0f} of {total_s:.0f} s were preparation"
    programs = f"{preparation['compiled']} programs were compiled, {preparation['loaded']} loaded"
    if not preparation.get("kept", True):
        return f"{spent}; {programs}. {preparation.get('note', '')}"
    if not preparation["compiled"]:
        return f"{spent}; no program was compiled, {preparation['loaded']} were loaded."
    return f"{spent}; the same command now takes {preparation['again_s']:.0f} s, as estimated: {programs}."


def programs_of(points: Iterable[PreparedPoint]) -> dict[str, int]:
    """The most programs of each point in any set."""
    most: dict[str, int] = {}
    for each in points:
        if each["point"]:
            most[each["point"]] = max(most.get(each["point"], 0), each["programs"])
    return most
