"""`singe train`: examples as commands, whose options are the fields of their settings."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import singe as sg
from singe.tools import cli
from singe.train import read_config
from singe.train.examples import EXAMPLES, example
from singe.train.examples.mnist import Digits, MnistConfig
from singe.train.monitor.reports import read_run


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command."""
    try:
        code = cli.main(["train", *map(str, args)])
    except SystemExit as e:
        code = int(e.code or 0)
    return code, *capsys.readouterr()


def test_the_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert all(name in out for name in EXAMPLES)
    for name in EXAMPLES:
        config = example(name).SETTINGS(**example(name).QUICK)
        assert config.epochs > 0
        assert isinstance(config.seed, int)


def test_help_lists_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "99.4% of the test images" in " ".join(out.split())
    assert all(run(capsys, name, "--help")[0] == 0 for name in EXAMPLES)


def test_an_example_shows_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "mnist", "--help")
    assert code == 0
    for option in ("--device", "--epochs", "--resume", "--run", "--seed", "--quick", "--batch-size", "--lr"):
        assert option in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("mnst",), "invalid choice: 'mnst'"),
        (("mnist", "--lr", "fast"), "argument --lr: invalid float value"),
        (("mnist", "--lrr", "1"), "unrecognized arguments: --lrr"),
        (("mnist", "--resume"), "there is no run of mnist with checkpoints"),
        (("mnist", "--data", "nowhere"), "nowhere"),
        (("mnist", "--epochs", "-1"), "argument --epochs: got -1, expected at least 1"),
        (("sums", "--epochs", "0"), "argument --epochs: got 0, expected at least 1"),
        (("sums", "--lr", "-3"), "argument --lr: got -3, expected at least 0"),
        (("sums", "--lr", "inf"), "argument --lr: got inf"),
        (("mnist", "--shift", "5"), "argument --shift: got 5, expected at least 0 and at most 1"),
        (("gpt", "--dropout", "1.5"), "argument --dropout: got 1.5, expected at least 0 and at most 1"),
        (("sums", "--resume", "--run", "nope"), "there is no run in nope to resume"),
    ],
)
def test_wrong_options_end_with_a_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    args: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, errors = run(capsys, *args)
    assert code == 2
    assert message in errors
    assert len(errors.strip().splitlines()) == 1


def test_a_run_is_kept_and_resumed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, digits: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("mnist", "--data", digits, "--device", "numpy", "--plain", "--batch-size", 32)
    code, out, errors = run(capsys, *given, "--quick", "--lr", 0.01)
    assert (code, errors) == (0, "")
    assert "1 epoch, 3 steps in" in out
    folder = tmp_path / "runs" / "mnist-1"
    config = read_config(folder / "config.json", MnistConfig)
    assert (config.lr, config.batch_size, config.epochs, config.items) == (0.01, 32, 1, 1000)
    code, out, errors = run(capsys, "mnist", "--resume", "--epochs", 2, "--device", "numpy", "--plain")
    assert (code, errors) == (0, "")
    assert "2 epochs, 6 steps in" in out
    assert read_config(folder / "config.json", MnistConfig).lr == 0.01
    with (folder / "epochs.csv").open() as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2"]
    trained = sg.load_weights(Digits(np.random.default_rng(1)), folder / "mnist.safetensors")
    assert trained(sg.zeros((1, 1, 28, 28))).shape == (1, 10)
    code, _, errors = run(capsys, "sums", "--resume", "--run", folder)
    assert code == 2
    assert f"{folder} is a run of mnist: singe train mnist --resume --run {folder}" in errors
    assert trained.parameter_count <= 150_000
    code, out, _ = run(capsys, *given, "--quick")
    assert code == 0
    assert (tmp_path / "runs" / "mnist-2" / "mnist.safetensors").is_file()
    code, _, errors = run(capsys, *given, "--quick", "--run", folder)
    assert code == 2
    assert "resume=True" in errors


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_train_in_float16(capsys: pytest.CaptureFixture[str], tmp_path: Path, digits: Path, name: str) -> None:
    data = ("--data", digits) if name == "mnist" else ()
    given = ("--quick", "--device", "numpy", "--plain", "--precision", "float16", "--run", tmp_path / "r", *data)
    assert run(capsys, name, *given)[::2] == (0, "")


@pytest.mark.slow
def test_data_that_cannot_be_fetched_are_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network: the line says where they were looked for, and how to give them; given, they are enough."""

    def none(*_: object, **__: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("socket.create_connection", none)
    monkeypatch.setattr("singe.files.download.ATTEMPTS_TO_REACH", 1)
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    given = ("mnist", "--quick", "--plain", "--device", "numpy")
    code, _, errors = run(capsys, *given, "--run", tmp_path / "r")
    assert code == 2
    assert errors.count("\n") == 1
    assert str(tmp_path / "cache") in errors
    assert "--data FOLDER" in errors
    assert "train-images-idx3-ubyte.gz" in errors
    assert "sha256" not in errors
    assert not (tmp_path / "r").exists()
    assert run(capsys, *given, "--data", digits, "--items", 16, "--run", tmp_path / "r")[0] == 0


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM ends a process at once elsewhere")
def test_sigterm_ends_a_command_that_can_be_resumed(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "singe",
        "train",
        "sums",
        "--device",
        "numpy",
        "--plain",
        "--run",
        "r",
        "--epochs",
        "5000",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "r" / "checkpoints").is_dir():
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 143
    assert "to go on: singe train sums --resume --run r" in out
    assert read_run(tmp_path / "r").reason == "terminated"


def test_the_weights_among_the_demos_fit_the_example() -> None:
    """They read a drawn one: a bar in the middle."""
    weights = Path(__file__).parents[3] / "demos" / "trained" / "mnist.safetensors"
    images = np.zeros((1, 1, 28, 28), np.float32)
    images[:, :, 4:24, 13:15] = 1
    model = sg.load_weights(Digits(np.random.default_rng(0)), weights)
    assert model(sg.tensor(images)).numpy().argmax() == 1
