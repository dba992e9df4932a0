"""Sounds in files and arrays: `sound_of` takes all that a caller may give; `Resampler` gives samples another rate as they come."""

from .resampling import Resampler as Resampler
from .resampling import resample as resample
from .sound import Sound as Sound
from .sources import SUFFIXES as SUFFIXES
from .sources import blocks_at as blocks_at
from .sources import sound_of as sound_of
from .wav import wav_bytes as wav_bytes
