"""onnxruntime.transformers: of its modules, the one that programs which run models import."""
