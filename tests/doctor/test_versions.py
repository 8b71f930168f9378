# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which versions of jax, jaxlib, plug-ins and driver are compatible."""

from __future__ import annotations

import pytest

from jaxbench.command_form import with_extra
from jaxbench.doctor import accelerators
from jaxbench.doctor.accelerators import Host
from jaxbench.machine import manifest

LINES = [
    "jaxlib<=0.10.2,>=0.10.1",
    'jaxlib==0.10.1; extra == "minimum-jaxlib"',
    'libtpu==0.0.42.*; extra == "tpu"',
    'jax-cuda13-plugin[with-cuda]<=0.10.2,>=0.10.2; extra == "cuda13"',
    'jax-cuda13-plugin<=0.10.2,>=0.10.2; extra == "cuda13-local"',
    'jax-rocm7-plugin==0.10.2.*; extra == "rocm7-local"',
    "numpy>=2.0",
]
BASE = {"jax": "0.10.2", "jaxlib": "0.10.2"}


@pytest.mark.parametrize(
    "found",
    [
        BASE,
        {**BASE, "jaxlib": "0.10.1"},
        {**BASE, "jax-cuda13-plugin": "0.10.2"},
        {**BASE, "jax-rocm7-plugin": "0.10.2.1"},
        {**BASE, "libtpu": "0.0.42.1"},
    ],
)
def test_what_fits(found: dict[str, str]) -> None:
    assert accelerators.versions(found, LINES).state == "good"


@pytest.mark.parametrize(
    ("found", "message", "legal"),
    [
        ({"jaxlib": "0.9.2"}, "jaxlib is 0.9.2", "jaxlib<=0.10.2,>=0.10.1"),
        ({"jaxlib": "0.10.3"}, "jaxlib is 0.10.3", "jaxlib<=0.10.2,>=0.10.1"),
        ({"jax-cuda13-plugin": "0.10.1"}, "jax-cuda13-plugin is 0.10.1", "jax-cuda13-plugin<=0.10.2,>=0.10.2"),
        ({"jax-rocm7-plugin": "0.9.1"}, "jax-rocm7-plugin is 0.9.1", "jax-rocm7-plugin==0.10.2.*"),
        ({"libtpu": "0.0.37"}, "libtpu is 0.0.37", "libtpu==0.0.42.*"),
    ],
)
def test_each_mismatch_names_the_legal_version(found: dict[str, str], message: str, legal: str) -> None:
    wrong = accelerators.versions({**BASE, **found}, LINES)
    assert wrong.state == "bad" and message in wrong.message and wrong.advice == f"Install '{legal}'."


def test_several_mismatches_are_one_finding() -> None:
    both = accelerators.versions({**BASE, "jaxlib": "0.9.0", "libtpu": "0.0.37"}, LINES)
    assert "jaxlib is 0.9.0, libtpu is 0.0.37" in both.message and "libtpu==" in both.advice
    absent = accelerators.versions({**BASE, "jaxlib": "not installed"}, LINES)
    assert absent.state == "bad" and "jaxlib not installed" in absent.message


@pytest.mark.parametrize(
    ("driver", "plugin", "state", "extra"),
    [
        ("580.65.06", "jax-cuda13-plugin", "good", "cuda13"),
        ("535.54.03", "jax-cuda13-plugin", "bad", "cuda12"),
        ("535.54.03", "jax-cuda12-plugin", "good", "cuda12"),
        ("470.1", "jax-cuda12-plugin", "bad", ""),
    ],
)
def test_the_driver_must_be_new_enough(driver: str, plugin: str, state: str, extra: str) -> None:
    found = accelerators.driver(Host(driver, 1), {**BASE, plugin: "0.10.2"})
    assert found.state == state and accelerators.extra_for(driver) == extra
    if state == "bad":
        advice = f"{with_extra(extra)}." if extra else "Update the driver."
        assert driver in found.message and found.advice.endswith(advice)


def test_the_installed_versions_fit() -> None:
    assert accelerators.versions(manifest.versions()).state == "good"  # by the requirements of the installed jax
