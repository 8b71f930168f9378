# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Eight fake CPU devices in every test process, set up before anything touches the backend."""

import gc
import os
import signal

import surroundings  # noqa: F401  first: the libraries below read variables when they are imported

# isort: split
import doorway
import hypothesis
import jax
import pytest
from chosen.choice import left_out
from doorway import COMPILED, UNOPTIMISED
from thin import QUARTERS, in_quarter

from jaxbench.machine.start import start_fake_cpu
from jaxbench.report.drawing import canvas

hypothesis.settings.register_profile("jaxbench", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("jaxbench")
# A shell that starts the tests in the background lets them and their children ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
gc.set_threshold(50_000)  # tracing makes many long-lived objects: garbage collection took a tenth of the tests' time
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {UNOPTIMISED}".strip()
jax.config.update("jax_traceback_in_locations_limit", 0)
# Many tests build the same programs anew. Not shared by all processes of pytest: JAX does not write it atomically.
jax.config.update("jax_compilation_cache_dir", COMPILED)
os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED  # for runs in this process: no test writes into a user's own cache
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
os.fsync = lambda descriptor: None  # a disk takes milliseconds for each of thousands of files; no test cuts the power
os.environ["NPROC"] = "16"  # tests run steps without waiting (`jaxbench.core.clock.RUN_AHEAD`)
start_fake_cpu(8, pin=False)
# Drawing dominates the time of page tests, and a page shows only one of a figure's three formats.
EVERY_FORMAT, canvas.FORMATS = canvas.FORMATS, ("svg",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quarter", type=int, choices=QUARTERS, help="of the tests marked full, run only this quarter")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked full
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    costly = left_out()
    for item in items:
        if item.nodeid in costly:
            item.add_marker(pytest.mark.full(drawn=False))
    if quarter := config.getoption("--quarter"):
        elsewhere = [item for item in items if item.get_closest_marker("full") and not in_quarter(item.nodeid, quarter)]
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in set(elsewhere)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Drawing takes half of a short run's time, and test_every_figure.py draws each figure, so only `make test-all`
    # draws those of every run; not those of tests that are only too slow for `make test`.
    full = item.get_closest_marker("full")
    doorway.drawn = full is not None and full.kwargs.get("drawn", True)


@pytest.fixture
def every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws all formats of a figure, as in a user's process."""
    monkeypatch.setattr(canvas, "FORMATS", EVERY_FORMAT)
