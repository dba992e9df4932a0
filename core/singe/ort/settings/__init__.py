"""What concerns all sessions: enumerations, providers, the process."""
