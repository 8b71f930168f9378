# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM at any moment end a command with one sentence and exit code 130: real processes and signals."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from doorway import ROOT, command, environment

SMOKE = ("--preset=smoke", "--config.mesh.platform=cpu")
LONG = ("--config.strategy=jit_auto", "--config.scaling=strong", "--config.measure.rounds=4")
VERBS = {
    "run": ("run", "mlp", *SMOKE, *LONG, "--workdir=../run"),  # the same folder: each start continues the one before
    "train": ("train", "mlp", *SMOKE, "--config.train.target=2", "--workdir=../train"),
    "try": ("try", "cnn", "--preset=smoke"),
    "ab": ("ab", "mlp", "--b=--config.batch=64", *SMOKE),
    "doctor": ("doctor",),
    "machine": ("machine", "--preset=smoke"),
}


def of_session(session: int) -> list[str]:
    """The commands of the processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has just ended
            continue
    return found


def has_begun(pid: int) -> bool:
    """Whether Python itself has started, and jaxbench holds SIGTERM back or has a handler for it. Nothing can be done
    about a signal before."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool((int(status["SigBlk"], 16) | int(status["SigCgt"], 16)) >> (signal.SIGTERM - 1) & 1)


def stopped_at(folder: Path, words: tuple[str, ...], delay_s: float, number: int, *, group: bool) -> str:
    """Stops a command after a delay. Returns what is wrong with its end; "" if nothing is; "finished" if it was faster.

    group: the signal reaches all processes of the terminal, as Ctrl-C does; False: only the command.
    """
    folder.mkdir(parents=True, exist_ok=True)
    locks = folder / "locks"
    variables = {**environment(), "JAXBENCH_LOCK_DIR": str(locks)}
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen(
            command(*words), cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True,
        )  # fmt: skip
        while not has_begun(process.pid):
            time.sleep(0.001)
        time.sleep(delay_s)
        if process.poll() is not None:
            return "finished"
        (os.killpg if group else os.kill)(process.pid, number)
        try:
            code = process.wait(90)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "it ran on"
    out, err = ((folder / name).read_text(errors="replace") for name in ("out", "err"))
    if code != 130:
        return f"exit code {code}: {out[-300:]}{err[-600:]}"
    if "Traceback" in out + err or (out + err).lower().count("stopped") != 1 or err:
        return f"said {out[-300:]}{err[-1500:]}"
    deadline = time.monotonic() + 10
    while (left := of_session(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if left:
        return f"still running: {left}"
    for lock in locks.glob("**/*.lock"):
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return ""


@pytest.mark.parametrize(
    ("verb", "delay_s"), [("run", 0.0), ("machine", 0.4), ("try", 0.9), ("doctor", 1.5), ("ab", 2.0), ("train", 2.5)]
)
def test_a_signal_ends_a_command_with_one_sentence(tmp_path: Path, verb: str, delay_s: float) -> None:
    number = signal.SIGTERM if verb in ("doctor", "machine") else signal.SIGINT
    assert stopped_at(tmp_path, VERBS[verb], delay_s, number, group=number == signal.SIGINT) in ("", "finished")


@pytest.mark.full
def test_two_hundred_signals_at_any_moment(tmp_path: Path) -> None:
    chance, wrong, counts = random.Random(0), [], Counter[str]()
    for number in range(200):
        verb = [*VERBS][number % len(VERBS)]
        delay_s = chance.uniform(0.0, 3.0)
        sent = signal.SIGTERM if number % 5 == 4 else signal.SIGINT
        found = stopped_at(tmp_path / str(number), VERBS[verb], delay_s, sent, group=number % 2 == 0)
        counts[found if found == "finished" else "wrong" if found else "right"] += 1
        if found not in ("", "finished"):
            wrong.append(f"{number}: {verb} {sent.name} after {delay_s:.3f} s: {found}")
            print(wrong[-1])
    print(dict(counts))
    assert not wrong
    done = subprocess.run(
        command(*VERBS["run"]), cwd=tmp_path / "0", env=environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def small(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """A program that does to itself what a signal does to a command."""
    head = "import gc, os, signal, sys, time\nfrom jaxbench import interrupts\n"
    guarded = "with interrupts.ending():\n    interrupts.listen()\n" + textwrap.indent(textwrap.dedent(body), "    ")
    (folder / "program.py").write_text(head + guarded)
    return subprocess.run(
        [sys.executable, str(folder / "program.py")], capture_output=True, text=True, timeout=60,
        env={**environment(), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


LOST = {
    "a callback of the garbage collector": """
        gc.callbacks.append(lambda phase, about: phase == "start" and os.kill(os.getpid(), signal.SIGINT))
        gc.collect()
        gc.callbacks.clear()
        while True: time.sleep(0.01)
    """,
    "a finalizer": """
        class Thing:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGTERM)
        thing = Thing()
        del thing
        while True: time.sleep(0.01)
    """,
    "an import that names another cause": """
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error
    """,
    "a library that tries again": """
        while True:
            try:
                os.kill(os.getpid(), signal.SIGINT) if not interrupts.pending() else time.sleep(0.01)
            except BaseException:
                continue
            if interrupts.pending(): break
        while True: time.sleep(0.01)
    """,
    "code that does not return to Python": """
        interrupts.STUCK_S = 0.2
        import hashlib, threading
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
    """,
    "an exit code of its own": """
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            sys.exit(2)
    """,
}


@pytest.mark.parametrize("place", LOST)
def test_a_signal_is_not_lost(tmp_path: Path, place: str) -> None:
    done = small(tmp_path, LOST[place])
    assert (done.returncode, done.stdout, done.stderr) == (130, "Stopped.\n", "")


@pytest.mark.parametrize(("signals", "code", "said"), [(1, 0, "saved after SIGTERM\n"), (2, 130, "Stopped.\n")])
def test_a_training_may_take_its_time_to_save_until_a_second_signal(
    tmp_path: Path, signals: int, code: int, said: str
) -> None:
    body = f"""
    from jaxbench.features.training.loop import of_signals
    interrupts.STUCK_S = 0.2
    with of_signals() as stop:
        for _ in range({signals}):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        print("saved after", stop.name)
    """
    done = small(tmp_path, body)
    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")


def test_what_a_command_does_while_it_stops_is_not_interrupted(tmp_path: Path) -> None:
    body = """
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    finally:
        time.sleep(1)  # closes workers
        print("closed")
    """
    done = small(tmp_path, body)
    assert (done.returncode, done.stdout, done.stderr) == (130, "closed\nStopped.\n", "")


def test_a_signal_after_the_end_changes_only_the_exit_code(tmp_path: Path) -> None:
    body = """
    import atexit
    atexit.register(lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(5)))
    print("done")
    """
    done = small(tmp_path, body)
    assert (done.returncode, done.stdout, done.stderr) == (130, "done\nStopped.\n", "")
