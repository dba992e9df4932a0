"""Packages that are written for onnxruntime answer the same over singe.ort, unmodified."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest
from ort_packages import answers

import singe as sg

pytest.importorskip("onnxruntime", reason="no package onnxruntime: pip install onnxruntime")
HEAVY: Final = [pytest.mark.nightly]
CASES: Final = [
    pytest.param("magika", ("numpy", "wasm", "webgpu"), marks=pytest.mark.full),
    pytest.param("silero_vad", ("numpy", "wasm", "webgpu"), marks=pytest.mark.full),
    pytest.param("openwakeword", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("rapidocr_onnxruntime", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("fastembed", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("onnx_asr", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("arabic_name_romanizer", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("text2tashkeel", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("captcha_whisperer", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("khmersm", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("ddddocr", ("wasm", "webgpu"), marks=HEAVY),
    pytest.param("luscinia", ("wasm",), marks=HEAVY),
    pytest.param("nudenet", ("wasm", "webgpu"), marks=HEAVY),
]
TOLERANCE: Final[dict[str, float]] = {"gigaam_v2 features": 5e-3, "kaldi features": 1e-3, "whisper80 features": 2e-3}
"""Answers that are logarithms of energies near zero ↦ by how much they may differ; others by 1e-4 of the largest."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "devices"), CASES)
def test_a_package_answers_as_over_onnxruntime(name: str, devices: tuple[str, ...], tmp_path: Path) -> None:
    expected = answers(name, "onnxruntime", tmp_path)
    assert expected
    tried = 0
    for device in devices:
        try:
            sg.device(device)
        except sg.DeviceError:
            continue
        tried += 1
        found = answers(name, device, tmp_path)
        assert found.keys() == expected.keys()
        for key, wanted in expected.items():
            what = f"{name} on {device}: {key}"
            assert found[key].shape == wanted.shape, what
            if wanted.dtype.kind == "f" and wanted.size:
                within = TOLERANCE.get(key, 1e-4 * max(1.0, float(np.abs(wanted).max())))
                np.testing.assert_allclose(found[key], wanted, rtol=0, atol=within, err_msg=what)
            else:
                assert found[key].tolist() == wanted.tolist(), what
    if not tried:
        pytest.skip(f"none of the devices {', '.join(devices)} is here")
