"""The examples of training run from the start to the end, with the settings of --quick, and learn."""

from __future__ import annotations

import importlib
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from singe.tools import cli
from singe.train.examples import EXAMPLES

SCRIPTS = Path(__file__).parents[3] / "demos" / "training"
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
@pytest.mark.parametrize("script", ["housing"], indirect=True)
def test_prices_of_houses_are_learnt(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["MAE"] < 0.8 * found["always"]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["news"], indirect=True)
def test_articles_are_sorted_by_subject(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["accuracy"] > 0.5
    assert found["words"] > 50


@pytest.mark.parametrize("script", ["news"], indirect=True)
def test_articles_in_the_form_of_ag_news_are_read(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('"3","Oil, up","Shares of ""the"" 7 fall."\n"1","A treaty","Oil"\n')
    found = [script.articles(tmp_path / "train.csv")[k] for k in range(2)]
    assert found == [(["oil", "up", "shares", "of", "the", "7", "fall"], 2), (["a", "treaty", "oil"], 0)]
    numbers = script.vocabulary(found)
    assert numbers["oil"] == script.UNKNOWN + 1, "the most frequent word comes first"
    assert sorted(numbers.values()) == list(range(2, 2 + len(numbers)))


@pytest.mark.parametrize("script", ["own_display"], indirect=True)
def test_a_display_of_ones_own_shows_the_run(script: ModuleType) -> None:
    shown = StringIO()
    assert script.main("numpy", quick=True, out=shown)["accuracy"] > 0.6
    text = shown.getvalue()
    assert "epoch 2 of 2  batch 10 of 10  loss " in text
    assert "epoch 2  train loss " in text
    assert "finished after " in text


@pytest.mark.parametrize("script", ["onnx_inference"], indirect=True)
def test_a_trained_network_is_run_from_its_onnx_file(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["accuracy"] > 0.97
    assert found["difference"] < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("script", ["fine_tuning"], indirect=True)
def test_weights_of_pytorch_are_read_and_tuned(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["shapes"] > 0.99
    for way in ("last layer", "LoRA", "all weights"):
        assert found[way] > found["from the start"]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["page"], indirect=True)
def test_what_was_trained_is_exported(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = script.main("numpy", quick=True, out=str(tmp_path / "page"))
    assert found["accuracy"] > 0.3
    assert found["difference"] < 1e-3
    assert f"singe serve {tmp_path / 'page'}" in capsys.readouterr().out
    assert (tmp_path / "page" / "index.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["image_folder"], indirect=True)
def test_a_folder_of_pictures_is_drawn_and_learned(script: ModuleType, tmp_path: Path) -> None:
    found = script.main("numpy", quick=True, folder=str(tmp_path / "shapes"))
    assert found["loss"] < 2
    assert {p.name for p in (tmp_path / "shapes").iterdir()} == set(script.CORNERS)
    assert script.main("numpy", quick=True, folder=str(tmp_path / "shapes"))["loss"] == pytest.approx(
        found["loss"], rel=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("script", ["wgan"], indirect=True)
def test_two_networks_learn_in_turns(script: ModuleType, digits: Path, tmp_path: Path) -> None:
    found = script.main("numpy", quick=True, source=str(digits), out=str(tmp_path / "samples"))
    assert found["distance"] != found["first"]
    with Image.open(tmp_path / "samples" / "epoch-1.png") as picture:
        assert picture.size == (8 * 28, 8 * 28)


@pytest.mark.parametrize("script", ["wgan"], indirect=True)
def test_quick_digits_need_no_network(script: ModuleType) -> None:
    images = script.few()
    assert len(images) == 1000
    picture, label = images[0]
    assert (picture.shape, picture.dtype, int(label)) == ((1, 28, 28), np.uint8, 5)


@pytest.mark.parametrize("script", ["wgan"], indirect=True)
def test_errors_end_with_a_line(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["wgan.py", "--data", "nowhere"])
    with pytest.raises(SystemExit):
        script.run(script.main, script.__doc__, data="", out="")
    errors = capsys.readouterr().err
    assert errors.startswith("wgan.py: nowhere: ")
    assert len(errors.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("script", ["dqn"], indirect=True)
def test_a_pole_is_balanced_by_trial_and_error(script: ModuleType) -> None:
    found = script.main("numpy", quick=True)
    assert found["updates"] > 50
    assert found["mean"] > 9


@pytest.mark.parametrize("script", ["dqn"], indirect=True)
def test_a_cart_moves_as_it_is_pushed(script: ModuleType) -> None:
    carts = script.CartPole(3, seed=0)
    right = np.array([True, False, True])
    after, fallen, lengths = carts.step(right)
    assert ((after[:, 1] > 0.1) == right).all()
    assert ((after[:, 3] < -0.2) == right).all(), "the pole stays behind"
    assert not fallen.any()
    for _ in range(40):
        lengths += carts.step(right)[2]
    assert 6 < len(lengths) < 15
    assert all(5 < length < 20 for length in lengths)


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
