"""The exercise bank as files that other learning platforms import: Moodle XML and GIFT."""

from dpsim.exports.frozen import MOST_SEED, MOST_VARIANTS
from dpsim.exports.report import FORMATS, Export, export

__all__ = ["FORMATS", "MOST_SEED", "MOST_VARIANTS", "Export", "export"]
