"""ai.onnx.ml: what skl2onnx writes for scikit-learn's models. Each family has a file."""

from . import encode, linear, trees, vectors  # noqa: F401 (each enters its adapters)
