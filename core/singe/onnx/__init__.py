"""ONNX files become Graphs: wire.py reads the bytes, model.py and tensors.py what they mean, importer.py what is to be computed."""
