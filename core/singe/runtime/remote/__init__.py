"""A device of another process or machine: the client, which is a Backend, and the server, which has the device."""
