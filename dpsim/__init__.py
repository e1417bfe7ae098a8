"""dpsim: see, run and check one step of synchronous data-parallel training.

The core (everything but ``dpsim.live`` and ``dpsim.ui``) needs numpy alone.
"""

from dpsim.scenario import Scenario
from dpsim.simulate import simulate
from dpsim.trace import Trace

__version__ = "0.1.0"

__all__ = ["Scenario", "Trace", "__version__", "simulate"]
