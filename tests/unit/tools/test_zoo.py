

def test_a_ready_model_is_exported_as_its_task() -> None:
    assert {name: task_of_ready(f"zoo:{name}") for name in ("blazeface", "hands", "joe", "smollm2", "magika")} == {
        "blazeface": "faces",
        "hands": "landmarks",
        "joe": "speak",
        "smollm2": None,
        "magika": None,
    }
    assert task_of_ready("blazeface") is None, "the name of a file"
