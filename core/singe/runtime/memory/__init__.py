"""Memory of devices: how it is taken (settings.py), counted (usage.py), and cut into pieces (heap.py)."""
