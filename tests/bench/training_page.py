"""A step of training in a browser: Singe beside TensorFlow.js and jax-js, in one page, in turns.

    python tests/bench/training_page.py [run] [--devices wasm,webgpu] [--networks mnist,layers] [--rounds 5]
    python tests/bench/training_page.py prepare DIR
    python DIR/training_page.py run [--browser PATH] [--browser-flags "…"] [--devices webgpu] [--json FILE]

`prepare` fills DIR with everything that a race needs: the bundles, the page, the peers from npm, this file. It needs Singe and
npm; `run` needs a Python without packages, a Chromium, and no network. Without a prepared folder, `run` prepares a temporary
one. "mnist" is the network of `singe train mnist`, "layers" has two linear layers. Batches have 64 images; the optimiser is
Adam; all start with the same weights, and the first losses show that all compute the same.

Pages are not isolated, so everything has one thread. A "step" is answered: images go in, the loss comes out. A "burst" of 20
steps reads the loss of the last only. TensorFlow.js's wasm backend has no Conv2DBackpropFilter, so it cannot train a
convolution; "completed" is with that kernel made of its own convolution (training_page.js). With --plain its backend in
plain JavaScript takes part, too.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import urllib.parse
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
PACKAGES: Final = {
    "@tensorflow/tfjs": "4.22.0",
    "@tensorflow/tfjs-backend-wasm": "4.22.0",
    "@tensorflow/tfjs-backend-webgpu": "4.22.0",
    "@jax-js/jax": "0.1.25",
}
FILES: Final = {
    "tfjs": (
        "@tensorflow/tfjs/dist/tf.es2017.min.js",
        "@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.es2017.min.js",
        "@tensorflow/tfjs-backend-wasm/dist/*.wasm",
        "@tensorflow/tfjs-backend-webgpu/dist/tf-backend-webgpu.es2017.min.js",
    ),
    "jax": ("@jax-js/jax/dist/*.js",),
}
"""A folder of the site ↦ the files of the packages that go there."""
HTML: Final = """<!doctype html><meta charset=utf-8><title>training</title><link rel=icon href="data:,">
<script src="tfjs/tf.es2017.min.js"></script>
<script src="tfjs/tf-backend-wasm.es2017.min.js"></script>
<script src="tfjs/tf-backend-webgpu.es2017.min.js"></script>
<script type="module" src="training_page.js"></script>
"""
FLAGS: Final = (
    "--headless", "--no-sandbox", "--enable-unsafe-webgpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-quic", "--disable-dev-shm-usage",
)  # fmt: skip
SOFTWARE: Final = (
    "--use-webgpu-adapter=swiftshader --enable-unsafe-swiftshader --enable-dawn-features=disable_workgroup_init"
)
TYPES: Final = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
PEERS: Final = ("TensorFlow.js", "TensorFlow.js, completed", "TensorFlow.js, cpu", "jax-js")
NAME: Final = "training_page"


def prepare(folder: Path) -> None:
    """Fill a folder with the page, the bundles and the peers."""
    # Where the folder is raced there is neither.
    import numpy as np  # noqa: PLC0415

    import singe as sg  # noqa: PLC0415
    from singe import nn  # noqa: PLC0415
    from singe.train.examples.mnist import MEAN, STD, Digits  # noqa: PLC0415

    class Layers(nn.Module):
        first: nn.Linear
        second: nn.Linear

        def __init__(self, rng: np.random.Generator) -> None:
            self.first, self.second = nn.Linear(784, 64, rng=rng), nn.Linear(64, 10, rng=rng)

        def forward(self, x: sg.Tensor) -> sg.Tensor:
            return self.second(self.first(((x - MEAN) / STD).flatten(1)).relu())

    def loss(model: Any, x: sg.Tensor, y: sg.Tensor) -> sg.Tensor:
        return nn.CrossEntropyLoss()(model(x), y)

    folder.mkdir(parents=True, exist_ok=True)
    batch = np.zeros((64, 1, 28, 28), np.float32), np.zeros(64, np.int32)
    for name, made in (("mnist", Digits), ("layers", Layers)):
        step = sg.train.TrainStep(made(np.random.default_rng(0)).train(), sg.optim.Adam(1e-3), loss)
        sg.export(step.as_model(*batch), folder / name)
    with tempfile.TemporaryDirectory(prefix="singe-npm-") as packages:
        wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        subprocess.run(
            ["npm", "install", "--prefix", packages, *options, *wanted], check=True, stdout=subprocess.DEVNULL
        )
        for place, patterns in FILES.items():
            (folder / place).mkdir(exist_ok=True)
            for pattern in patterns:
                for path in (Path(packages) / "node_modules").glob(pattern):
                    shutil.copyfile(path, folder / place / path.name)
    (folder / "index.html").write_text(HTML, "utf-8")
    for suffix in (".py", ".js"):
        shutil.copyfile(HERE / f"{NAME}{suffix}", folder / f"{NAME}{suffix}")


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | TYPES

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, _Site)
        server.told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        server.done.set()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Site(http.server.ThreadingHTTPServer):
    """A server of the folder, and the figures that the page sent."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
        self.told: dict[str, Any] = {}
        self.done = threading.Event()


def asked(folder: Path, job: dict[str, Any], browser: str, flags: list[str], patience: float) -> dict[str, Any]:
    """What the page tells about a race, in a browser of its own."""
    with (
        _Site(folder) as site,
        tempfile.TemporaryDirectory(prefix="singe-profile-", ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=site.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{site.server_port}/?{urllib.parse.quote(json.dumps(job))}"
        with (Path(profile) / "log").open("w") as log:
            command = [browser, *FLAGS, *flags, f"--user-data-dir={profile}", url]
            started = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        answered = site.done.wait(patience)
        os.killpg(started.pid, signal.SIGTERM)
        started.wait()
        site.shutdown()
        said = (Path(profile) / "log").read_text(errors="replace")[-500:]
    return site.told if answered else {"errors": {"page": f"no answer in {patience} s; the browser said: {said}"}}


def show(name: str, found: dict[str, Any]) -> None:
    """Print a race: for each way of stepping the times, and Singe's relative to each peer's."""
    losses = found.get("losses", {})
    for who, told in losses.items():
        gap = max(abs(a - b) / abs(b) for a, b in zip(told, losses.get("Singe", told), strict=True))
        print(f"| {name} | losses | {who} | {' '.join(f'{x:.5f}' for x in told)} | differ by {gap:.0e} |", flush=True)
    for way, times in found.get("times", {}).items():
        middle = {who: statistics.median(taken) for who, taken in times.items() if taken}
        for who, taken in middle.items():
            ratio = f"{middle['Singe'] / taken:.3f}" if who in PEERS and "Singe" in middle else ""
            print(f"| {name} | {way} | {who} | {taken:.2f} ({min(times[who]):.2f}) | {ratio} |", flush=True)
    for who, text in found.get("errors", {}).items():
        print(f"| {name} | | {who} | {text.splitlines()[0]} | |", flush=True)


def run(folder: Path, args: argparse.Namespace) -> None:
    found = {}
    print("| network, device | way | | ms a step (least) | Singe's time over it |\n|---|---|---|---|---|")
    for device in args.devices.split(","):
        for network in args.networks.split(","):
            job = {
                "network": network,
                "device": device,
                "rounds": args.rounds,
                "lasting": args.lasting,
                "plain": args.plain,
            }
            name = f"{network}, {device}"
            found[name] = asked(folder, job, args.browser, shlex.split(args.browser_flags), args.timeout)
            show(name, found[name])
    print({told["adapter"] for told in found.values() if "adapter" in told} or "")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=["run", "prepare"], default="run")
    parser.add_argument(
        "folder", type=Path, nargs="?", help="what to prepare, or what was prepared (default: this file's)"
    )
    parser.add_argument("--devices", default="wasm")
    parser.add_argument("--networks", default="mnist,layers")
    parser.add_argument("--rounds", type=int, default=5, help="0: the first losses only")
    parser.add_argument("--lasting", type=int, default=500, help="milliseconds of a turn, at least")
    parser.add_argument("--plain", action="store_true", help="TensorFlow.js in plain JavaScript, too: slow")
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--browser-flags", default=SOFTWARE, help="as a shell would take them (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=300, help="the most seconds of a race")
    parser.add_argument("--json", type=Path, help="write all figures here")
    args = parser.parse_args()
    if args.command == "prepare":
        if args.folder is None:
            parser.error("prepare: expected a folder")
        prepare(args.folder)
    elif (folder := args.folder or HERE).joinpath("index.html").is_file():
        run(folder, args)
    else:
        with tempfile.TemporaryDirectory(prefix="singe-training-") as made:
            prepare(Path(made))
            run(Path(made), args)


if __name__ == "__main__":
    main()
