"""`singe.array_api` passes the consortium's own tests, array-api-tests, on every device; the exceptions are listed here.

No package index has these tests: `make nightly` clones them, and installs what they need. The variable
ARRAY_API_TESTS names a folder that has them already, at COMMIT and with their submodule.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

import singe

ADDRESS: Final = "https://github.com/data-apis/array-api-tests"
COMMIT: Final = "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
NEEDED: Final = {"hypothesis": "hypothesis", "ndindex": "ndindex", "pytest_jsonreport": "pytest-json-report"}
"""What the tests import ↦ the package that has it."""
EXAMPLES: Final = 3
"""How many examples hypothesis draws for each test; more find more, and take longer."""
PASSING: Final = {"numpy": 0.95, "wasm": 0.90, "webgpu": 0.90}
"""The share of tests that must pass."""
IMMUTABLE: Final = "assigns to an element; a Tensor does not change, and says to use x.at[key].set(value)"
COMPLEX: Final = "NumPy's result for an infinite, NaN or zero part of a complex number, which the host computes"
ZERO: Final = "this odd function of −0 is 0 on the device"
QUOTIENT: Final = "quotients of infinities are NumPy's, and −0 divided by a number may lose its sign"
EXCEPTIONS: Final = {
    r"test_setitem": IMMUTABLE,
    r"test_setitem_masking": IMMUTABLE,
    r"test_asarray_arrays": IMMUTABLE,
    r"test_unary\[expm1\(.*real\(x_i\).*": COMPLEX,
    r"test_unary\[tanh\(.*real\(x_i\).*": COMPLEX,
    r"test_(binary|iop)\[(floor_divide|__i?floordiv__)\(.*": QUOTIENT,
    r"test_unary\[(sin|tan|asinh|atanh|log1p)\(x_i is -0\) -> -0\]": ZERO,
}
"""Tests that fail ↦ why."""


def _tried(what: str, *command: str, cwd: Path) -> None:
    """Run a command that needs the network; the test is skipped if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"{what}: {(done.stderr.strip() or 'no reason was given').splitlines()[-1]}")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of the tests, and one with hypothesis, if Python has it not."""
    more = tmp_path_factory.mktemp("array_api")
    given = os.environ.get("ARRAY_API_TESTS")
    folder = Path(given) if given else more / "array-api-tests"
    if not given:
        if shutil.which("git") is None:
            pytest.skip("no git here")
        _tried("array-api-tests cannot be cloned", "git", "clone", "-q", ADDRESS, str(folder), cwd=more)
        _tried(f"there is no commit {COMMIT}", "git", "checkout", "-q", COMMIT, cwd=folder)
        _tried("its submodule cannot be cloned", "git", "submodule", "update", "-q", "--init", cwd=folder)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
    assert head.stdout.strip() == COMMIT, f"array-api-tests is at {head.stdout.strip()}, expected {COMMIT}"
    packages = more / "packages"
    packages.mkdir()
    lacking = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if lacking:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(packages), *lacking]
        _tried(f"{' and '.join(lacking)} cannot be installed", *pip, cwd=more)
    return folder, packages


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("device", PASSING)
def test_the_suite_passes(device: str, suite: tuple[Path, Path]) -> None:
    folder, packages = suite
    if isinstance(singe.devices()[device], singe.DeviceError):
        pytest.skip(f"no device {device}")
    paths = [str(Path(__file__).parents[1] / "support"), str(packages), *sys.path]
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "array_api_device",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        "SINGE_DEVICE": device,
    }
    options = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "--disable-deadline", "--hypothesis-seed=0"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--max-examples={EXAMPLES}", "array_api_tests"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    counts = {
        word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", run.stdout.rpartition("\n\n")[2][-300:])
    }
    failed = re.findall(r"^(?:FAILED|ERROR) \S+?::(.*?)(?: - .*)?$", run.stdout, re.MULTILINE)
    unknown = [name for name in failed if not any(re.fullmatch(pattern, name) for pattern in EXCEPTIONS)]
    assert counts.get("passed"), run.stdout[-2000:] + run.stderr[-2000:]
    assert not unknown, "\n".join(unknown)
    assert counts["passed"] / sum(counts.values()) >= PASSING[device]
