# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which versions of jax, jaxlib, plug-ins and driver fit each other."""

from __future__ import annotations

import pytest

from jaxbench.doctor import versions

LINES = [
    "jaxlib<=0.10.2,>=0.10.1",
    'jaxlib==0.10.1; extra == "minimum-jaxlib"',
    'libtpu==0.0.42.*; extra == "tpu"',
    "numpy>=2.0",
]
BASE = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {"jax-cuda13-plugin": "0.10.2", "jax-cuda13-pjrt": "0.10.2"}


@pytest.mark.parametrize(
    "found",
    [
        BASE,
        {**BASE, "jaxlib": "0.10.1"},
        {**BASE, **CUDA},
        {**BASE, "jax-rocm7-plugin": "0.10.5"},
        {**BASE, "libtpu": "0.0.42.1"},
    ],
)
def test_what_fits(found: dict[str, str]) -> None:
    assert [finding.state for finding in versions.examine(found, LINES)] == ["good"]


@pytest.mark.parametrize(
    ("found", "state", "said", "legal"),
    [
        ({"jaxlib": "0.9.2"}, "bad", "jaxlib is 0.9.2, and jax 0.10.2 needs", "jaxlib<=0.10.2,>=0.10.1"),
        ({"jaxlib": "0.10.3"}, "bad", "jaxlib is 0.10.3, and jax 0.10.2 needs", "jaxlib<=0.10.2,>=0.10.1"),
        (
            {**CUDA, "jax-cuda13-plugin": "0.10.1"},
            "bad",
            "jax-cuda13-plugin is 0.10.1 and jaxlib 0.10.2",
            "Install jax-cuda13-plugin==0.10.2 (EXTRAS=cuda13).",
        ),
        (
            {**CUDA, "jax-cuda13-pjrt": "0.10.1"},
            "bad",
            "jax-cuda13-pjrt is 0.10.1 and jaxlib 0.10.2",
            "Install jax-cuda13-pjrt==0.10.2 (EXTRAS=cuda13).",
        ),
        ({"jax-cuda12-plugin": "0.10.2"}, "bad", "without jax-cuda12-pjrt", "jax-cuda12-pjrt==0.10.2 (EXTRAS=cuda12)"),
        ({"jax-rocm7-plugin": "0.9.1"}, "bad", "minor versions must be equal", "jax-rocm7-plugin 0.10.*"),
        ({"libtpu": "0.0.37"}, "doubtful", "libtpu is 0.0.37", "libtpu==0.0.42.*"),
    ],
)
def test_each_mismatch_names_the_legal_version(found: dict[str, str], state: str, said: str, legal: str) -> None:
    wrong = versions.examine({**BASE, **found}, LINES)
    assert len(wrong) == 1 and wrong[0].state == state
    assert said in wrong[0].message and legal in wrong[0].advice


def test_several_mismatches_are_several_findings() -> None:
    two = {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}
    both = versions.examine({**BASE, **CUDA, **two}, LINES)
    assert [finding.state for finding in both] == ["doubtful"] and "both installed" in both[0].message
    assert len(versions.examine({**BASE, "jaxlib": "0.9.0", **CUDA}, LINES)) == 3
    assert "jaxlib not installed" in versions.examine({"jax": "0.10.2"}, LINES)[0].message


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
    found = versions.driver(driver, {**BASE, plugin: "0.10.2"})
    assert found.state == state and versions.extra_for(driver) == extra
    if state == "bad":
        assert driver in found.message and found.advice.endswith(f"EXTRAS={extra}." if extra else "Update the driver.")


def test_what_is_installed_here_is_found() -> None:
    assert {"jax", "jaxlib"} <= set(versions.installed())
    assert [finding.state for finding in versions.examine()] == ["good"]  # by the requirements of the installed jax
