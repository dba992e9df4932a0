"""A process that was forked runs models, or says why it cannot; it never waits for a thread that it lacks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, threading
import numpy as np
import singe as sg

name, busy = sys.argv[1], sys.argv[2] == "busy"
x = np.full((256, 256), 0.001, np.float32)
program = sg.compile(lambda x: (x @ x).exp().sum(), x, device=name)
wanted = program(x)
running, stop = threading.Event(), threading.Event()

def work():
    with program.device.eager.lock:
        running.set()
        stop.wait()

if busy:
    threading.Thread(target=work).start()
    running.wait()
child = os.fork()
if child:
    status = os.waitpid(child, 0)[1]
    stop.set()
    sys.exit(os.waitstatus_to_exitcode(status) != 0)
signal.alarm(20)
try:
    print("same" if program(x) == wanted else "other", flush=True)
except sg.DeviceError as e:
    print(e, flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("device", "state", "said"),
    [
        ("numpy", "idle", "same"),
        ("numpy", "busy", "same"),
        ("wasm", "idle", "same"),
        ("wasm", "busy", "wasm: this process was forked, and another thread was using it; start processes with multi"),
        ("webgpu", "idle", "webgpu: this process was forked, and a GPU stays with the process that opened it; start"),
    ],
)
def test_a_forked_process_runs_or_refuses(device: str, state: str, said: str) -> None:
    # In a process of its own: it forks, which processes with threads of wgpu and wasmtime must not.
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, device, state]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said)
