"""Ready models by name: `zoo:NAME` in place of a path, or `zoo:NAME/FILE` for a file of a model that has several.

Fetched files are in the folder `zoo` of the cache folder, each in a folder of its hash. With SINGE_OFFLINE=1 nothing is fetched.
"""

from .fetching import address as address
from .fetching import clear as clear
from .fetching import default_for as default_for
from .fetching import fetch as fetch
from .fetching import fetch_all as fetch_all
from .fetching import find as find
from .fetching import is_here as is_here
from .fetching import zoo_file as zoo_file
from .rows import MODELS as MODELS
from .rows import ZooFile as ZooFile
from .rows import ZooModel as ZooModel
