"""OpenAI's interface for language models that are served."""
