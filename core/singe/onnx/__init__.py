"""ONNX files become Graphs: wire.py decodes the bytes, model.py and tensors.py the model, importer.py builds the Graph."""
