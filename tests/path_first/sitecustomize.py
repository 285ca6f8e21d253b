"""Python runs this as it starts, where PYTHONPATH has this folder: sys.path decides, as it should.

The finder of an editable install answers before sys.path is looked at, so a copy of the package
that PYTHONPATH names would never be imported.
"""

import sys
from importlib.machinery import PathFinder

sys.meta_path.insert(0, PathFinder)
