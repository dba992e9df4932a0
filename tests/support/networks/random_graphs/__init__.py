"""Random Graphs that run on every device, beside direct.py: how they are drawn, compared, and changed in their files.

sketch.py is a Graph that is being drawn; draws.py and draw_flow.py draw its nodes, within regions, too. drawn.py compares
a device's results; hostile_programs.py changes the headers of Programs.
"""
