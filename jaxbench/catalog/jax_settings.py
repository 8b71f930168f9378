# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Settings of JAX, from variables or from an experiment's file, that change the meaning of a measurement.

SETTINGS has the decision for each of them. A setting that is neither there nor in SILENT is named on the page of a run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jaxbench.errors import UserError

REFUSED, RESET = "refused", "reset"
_CHECKS = "it looks for mistakes in a program, which takes time"
_STRICT = "a program that is legal under it means the same without it"
_FAKE = "but its devices do not exist"
# These change only what is printed or written, or the manifest already has their effect: the devices, the processes and
# the programs that were loaded instead of compiled.
SILENT = re.compile(
    "jax_(log|traceback|dump|pprint|explain_cache|compiler_detailed|tracer_error|include_|hlo_source|source_url|debug_log|"
    "coordinator|num_processes|process_id|local_device|platform|num_cpu_devices|cpu_collectives|check_proxy|distributed|"
    "captured_constants_report|bypass|compilation_cache|enable_compilation_cache|persistent_cache|.*visible_devices)"
)
# What JAX reads as false; an empty variable counts as unset.
OFF = ("", "0", "f", "false", "n", "no", "off", "none")


class Setting(NamedTuple):
    """decision: REFUSED, or RESET to `value` in every process that measures. why: the reason, as a clause."""

    decision: str
    value: Any
    why: str


SETTINGS = {
    "jax_disable_jit": Setting(REFUSED, False, "so nothing would be compiled"),
    "jax_no_tracing": Setting(REFUSED, False, "so nothing could be compiled"),
    "jax_no_execution": Setting(REFUSED, False, "so nothing would run"),
    "jax_default_prng_impl": Setting(
        REFUSED, "threefry2x32", "but a training's keys are threefry2x32, from which a model may derive others"
    ),
    "jax_mock_gpu_topology": Setting(REFUSED, "", _FAKE),
    "mock_num_gpu_processes": Setting(REFUSED, 0, _FAKE),
    **dict.fromkeys(
        (
            *("jax_debug_nans", "jax_debug_infs", "jax_debug_key_reuse", "jax_check_tracer_leaks", "jax_enable_checks"),
            *("jax_check_static_indices", "jax_thread_guard", "jax_enable_custom_prng"),
        ),
        Setting(RESET, False, _CHECKS),
    ),
    **{f"jax_error_checking_behavior_{what}": Setting(RESET, "ignore", _CHECKS) for what in ("nan", "divide", "oob")},
    "jax_numpy_dtype_promotion": Setting(RESET, "standard", _STRICT),
    **dict.fromkeys(
        (
            *("jax_numpy_rank_promotion", "jax_legacy_prng_key", "jax_array_garbage_collection_guard"),
            *(f"jax_transfer_guard{way}" for way in ("", "_host_to_device", "_device_to_host", "_device_to_device")),
        ),
        Setting(RESET, "allow", _STRICT),
    ),
    "jax_default_device": Setting(RESET, None, "a strategy decides which devices compute"),
}


def refuse(environment: Mapping[str, str] = os.environ) -> None:
    """Raises UserError for a variable that makes measuring impossible. Does not import JAX."""
    for name, setting in SETTINGS.items():
        text = environment.get(name.upper(), "")
        if setting.decision == REFUSED and text.lower() not in (*OFF, str(setting.value)):
            raise refusal(f"{name.upper()}={text}", setting)


def refusal(given: str, setting: Setting) -> UserError:
    return UserError(f"{given} is set, {setting.why}: unset it.")


def sentences(environments: Iterable[Mapping[str, str]]) -> list[str]:
    """The sentences about the variables of a run's processes, for its page."""
    said: dict[str, str] = {}
    for name, text in (item for environment in environments for item in environment.items()):
        # A page may be published, so it shows no path of this machine.
        setting, shown = SETTINGS.get(name.lower()), name if "/" in text else f"{name}={text}"
        if setting is not None and setting.decision == RESET and text.lower() not in (*OFF, str(setting.value)):
            # By name, because the value that JAX makes of a typed "1", and a worker states, is "True".
            said.setdefault(name, f"{shown} was set, and was reset for the measurement: {setting.why}.")
        elif setting is None and name.startswith("JAX_") and not SILENT.match(name.lower()):
            said[shown] = f"{shown} was set: a run without it may measure something else."
    return list(said.values())
