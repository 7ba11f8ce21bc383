"""A rank of the recipe "fake": see `tests.helpers.fake_rank`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from tests.helpers.fake_rank import main

sys.exit(main())
