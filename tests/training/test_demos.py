"""The examples of training run from the start to the end, with the settings of --quick, and learn."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from singe.tools import cli
from singe.train.examples import EXAMPLES

SCRIPTS = Path(__file__).parents[2] / "demos" / "training"
SHARED = ("command", "pictures", "pretrain_torch")
"""What scripts import, and one that needs PyTorch."""


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of this name, as a module."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)
    found = importlib.import_module(request.param)
    for name in set(sys.modules) - before:
        if str(SCRIPTS) in str(getattr(sys.modules[name], "__file__", "")):
            monkeypatch.delitem(sys.modules, name)
    return found


def test_each_script_is_described_and_tested() -> None:
    described = (SCRIPTS / "README.md").read_text()
    for path in SCRIPTS.glob("*.py"):
        assert f"`{path.name}`" in described
        assert path.stem in SHARED or f'"{path.stem}"' in Path(__file__).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["custom_loop"], indirect=True)
def test_three_loops_have_the_same_losses(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    for way in script.WAYS:
        assert found[f"{way}.loss"] < found[f"{way}.first"]
        assert found[f"{way}.loss"] == pytest.approx(found["TrainStep.loss"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["one_fit"], indirect=True)
def test_one_fit_serves_two_tasks_and_records_each_batch(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["MAE"] < 1.5
    assert found["accuracy"] > 0.5
    assert found["rows"] == 18


@pytest.mark.slow
@pytest.mark.parametrize("script", ["fine_tuning"], indirect=True)
def test_weights_of_pytorch_are_read_and_tuned(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["shapes"] > 0.99
    for way in ("last layer", "LoRA", "all weights"):
        assert found[way] > found["from the start"]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["page"], indirect=True)
def test_what_was_trained_is_exported(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["accuracy"] > 0.3
    assert found["difference"] < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"mnist"}))  # that one fetches its data: test_train_command.py
def test_each_example_of_the_command_trains_and_keeps_its_weights(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", name, "--quick", "--plain", "--device", "numpy", "--run", str(tmp_path)]) == 0
    out, errors = capsys.readouterr()
    assert errors == ""
    assert "finished" in out
    assert (tmp_path / f"{name}.safetensors").is_file()
