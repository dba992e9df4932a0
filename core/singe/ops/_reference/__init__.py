"""The references of the structured rows, used only by tests: definitions written out element by element, sharing no
code with the rows. They compute in the type of their arrays, which is float64 in tests."""
