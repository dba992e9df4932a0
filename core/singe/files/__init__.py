"""Files, on this machine and behind URLs: those that callers name, and those that pages need."""

from .local import clear_parts as clear_parts
from .local import digest_of as digest_of
from .local import in_parts as in_parts
from .local import inside as inside
from .local import let_go as let_go
from .local import mapped as mapped
from .local import reason as reason
from .local import sha256_of as sha256_of
from .local import write as write
from .local import write_as as write_as
from .local import write_files as write_files
