"""What a run's folder records: listeners that write events to files."""

from .facts import FactsLog as FactsLog
from .page import ReportLog as ReportLog
from .tables import CsvLog as CsvLog
from .tables import SqliteLog as SqliteLog
from .tensorboard import TensorBoardLog as TensorBoardLog
