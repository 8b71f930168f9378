# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Finds out whether XLA knows the compiler options of an arm, by compiling a tiny program with them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding
from jaxlib import xla_client

from jaxbench.catalog import compiler_options
from jaxbench.errors import Unsupported, UserError
from jaxbench.levers.compiler import COMPILER, Options, require_platform
from jaxbench.levers.execution import EXECUTION

# XLA's error messages: the first two come from the CPU and GPU compilers, the first and the last from the TPU compiler.
_UNKNOWN = re.compile(r"No such compile option: '(?P<option>[^']*)'")
_WRONG = (
    re.compile(r"While setting option (?P<option>\w+), '(?P<value>.*)' is not a valid (?P<type>\w+) value"),
    re.compile(r"Failed to parse '(?P<value>.*)' into flag (?P<option>\w+)"),
)
_TYPES = {"bool": "true or false", "int32": "a whole number", "int64": "a whole number", "enum": "one of its words"}
_VARIABLE = {"tpu": "LIBTPU_INIT_ARGS"}  # the variable for options of the whole process; XLA_FLAGS on other platforms


def require(levers: Mapping[str, str], device: jax.Device) -> None:
    """Raises UserError for compiler options that XLA cannot use for the arm on this device.

    For options that XLA does not know, the error is Unsupported, a subclass.
    """
    options, text = COMPILER.of(levers), levers.get(COMPILER.name, "")
    if not options:
        return
    require_platform(levers, device.platform)
    if EXECUTION.of(levers) == "eager":
        raise UserError(
            f"--config.lever.compiler={text} needs a step that is compiled as a whole, but execution=eager runs it "
            "operation by operation: use execution=donated."
        )
    scalar = jax.ShapeDtypeStruct((), jnp.float32, sharding=SingleDeviceSharding(device))
    lowered = jax.jit(lambda x: x + 1).lower(scalar)
    try:
        lowered.compile(options)
    except jax.errors.JaxRuntimeError as error:
        answer = " ".join(str(error).split())
        kind = Unsupported if _UNKNOWN.search(answer) else UserError
        raise kind(f"--config.lever.compiler={text} {_said(answer, options, device.platform)}") from error


def _said(answer: str, options: Options, platform: str) -> str:
    """XLA's error as the end of a sentence that names the option and a legal one."""
    if found := _UNKNOWN.search(answer):
        option, variable = found["option"], _VARIABLE.get(platform, "XLA_FLAGS")
        close = difflib.get_close_matches(option, _known(), n=1, cutoff=0.8)
        instead = f"did you mean '{close[0]}'?" if close else f"set an option of the whole process with {variable}."
        return f"has {option}, which this XLA does not know as an option of a program: {instead}"
    for wrong in _WRONG:
        if found := wrong.search(answer):
            option, kind = found["option"], _TYPES.get(found.groupdict().get("type", ""), "a legal value")
            default = _known().get(option)
            legal = f"use {default}, for example" if default else "give it one, or leave it out"
            return f"has {option}={options.get(option, found['value'])}, which is not {kind}: {legal}."
    return f"is refused by this XLA ({answer[:300]}): use {COMPILER.default}."


def _known() -> dict[str, str]:
    """The options of this XLA with their defaults, and those of the catalogue, with "" as default."""
    owner = xla_client.CompileOptions()  # must outlive the text of its part
    text = repr(owner.executable_build_options.debug_options)
    catalogued = (each.options.split() for each in compiler_options.sets().values())
    names = {word.partition("=")[0]: "" for words in catalogued for word in words}
    return names | dict(re.findall(r"^(xla_\w+): \"?([^\"\n]*)", text, re.MULTILINE))
