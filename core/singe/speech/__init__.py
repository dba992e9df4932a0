"""Speech: Whisper, which writes down what is said."""
