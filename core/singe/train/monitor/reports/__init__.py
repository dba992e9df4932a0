"""Runs that were recorded: reading their folders, comparing them, and showing them as a page."""

from .html_page import report as report
from .record import RunRecord as RunRecord
from .record import differing as differing
from .record import find_runs as find_runs
from .record import is_run as is_run
from .record import read_run as read_run
from .record import titles as titles
