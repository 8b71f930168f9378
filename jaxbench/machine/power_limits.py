# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Power limits of NVIDIA GPUs: set for a measurement, and set back in every case.

The old limits are in a journal before a new one is set. A process that is killed leaves the journal, and the next start
sets them back. The folder of the journal follows the XDG specification for state.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.machine.nvml import Nvml, visible
from jaxbench.records.documents import decode
from jaxbench.records.reading import read_json

NAME = "power_limits.json"
FIELD = "--config.power_limit"


def parse(text: str) -> tuple[float, ...]:
    """ "300,400" -> (300.0, 400.0); "" -> (). Raises UserError."""
    words = [word.strip() for word in str(text).split(",") if word.strip()]
    try:
        limits = tuple(dict.fromkeys(float(word) for word in words))
    except ValueError as error:
        raise UserError(f"{FIELD}={text} is not a list of watts: use 300,400,500, for example.") from error
    if any(not 0 < limit < 1e5 for limit in limits):
        raise UserError(f"{FIELD}={text} is not a list of watts above 0: use 300,400,500, for example.")
    return limits


def journal(environment: Mapping[str, str] = os.environ) -> Path:
    base = environment.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "jaxbench" / NAME


def restore_left(path: Path | None = None) -> list[str]:
    """Sets back what a killed start has left. Returns a sentence for each GPU; [] if there was nothing to do."""
    path = path or journal()
    if not path.exists():
        return []
    if (nvml := Nvml.opened()) is None:
        return ["A killed run has changed power limits, and NVML does not answer now: check them with nvidia-smi -q."]
    try:
        return _restore(nvml, path)
    finally:
        nvml.close()


def _restore(nvml: Nvml, path: Path) -> list[str]:
    """Sets back the limits of a journal, and removes it once all are set."""
    said, failed = [], False
    uuids = _uuids(nvml)
    left = read_json(
        path, partial(decode, dict[str, float]), "check the limits with nvidia-smi -q, and delete the file."
    )
    for uuid, watts in left.items():
        why = nvml.set_power_limit(uuids[uuid], watts) if uuid in uuids else "the GPU is gone"
        failed = failed or bool(why)
        said.append(
            f"The power limit of {uuid} could not be set back to {watts:g} W ({why})."
            if why
            else f"The power limit of {uuid} is {watts:g} W again."
        )
    if not failed:
        path.unlink()
    return said


def _uuids(nvml: Nvml) -> dict[str, int]:
    """The index of each GPU by its UUID."""
    answers = {index: nvml.ask("UUID", handle) for index, handle in enumerate(nvml.handles)}
    return {each.decode() if isinstance(each, bytes) else str(each): index for index, each in answers.items() if each}


@contextlib.contextmanager
def at(watts: float, path: Path | None = None) -> Iterator[None]:
    """A context in which all visible GPUs have this limit. Raises UserError if the driver does not allow it."""
    path = path or journal()
    if (nvml := Nvml.opened()) is None:
        raise UserError(f"{FIELD}={watts:g} needs an NVIDIA GPU, its driver and the package nvidia-ml-py.")
    try:
        if path.exists():
            _restore(nvml, path)
        uuids = _uuids(nvml)
        chosen = {uuid: uuids[uuid] for uuid in uuids if uuids[uuid] in visible(len(nvml.handles), uuids)}
        before = {uuid: _now(nvml, index, watts) for uuid, index in chosen.items()}
        _write(path, before)
        try:
            for index in chosen.values():
                if why := nvml.set_power_limit(index, watts):
                    refused = f"{FIELD}={watts:g} is not allowed on GPU {index} ({why})"
                    raise UserError(f"{refused}: it needs root, or leave it out.")
            yield
        finally:
            _restore(nvml, path)
    finally:
        nvml.close()


def _now(nvml: Nvml, index: int, watts: float) -> float:
    """The limit of a GPU in watts. Raises UserError if it is unknown, or if `watts` is out of the driver's range."""
    handle = nvml.handles[index]
    now, limits = nvml.ask("PowerManagementLimit", handle), nvml.ask("PowerManagementLimitConstraints", handle)
    if now is None:
        raise UserError(f"{FIELD}={watts:g} is not possible: GPU {index} does not say its power limit.")
    if limits is not None and not limits[0] <= 1e3 * watts <= limits[1]:
        low, high = limits[0] / 1e3, limits[1] / 1e3
        raise UserError(f"{FIELD}={watts:g} is out of range on GPU {index}: use {low:g} to {high:g} W.")
    return float(now) / 1e3


def _write(path: Path, before: Mapping[str, float]) -> None:
    """Raises UserError: without a journal, a killed run would leave the limit changed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        with open(part, "w") as file:
            json.dump(dict(before), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise UserError(
            f"{FIELD} cannot note the old limits in '{path}' ({error.strerror}): set XDG_STATE_HOME to a folder."
        ) from error
