"""Upper bounds over all policies, by name: a new one is a file here and a line below; the plan chooses which is used."""

from typing import Final

from saddleback.certificates.bounds.bound import Bound, BoundMethod, BoundPlan
from saddleback.certificates.bounds.linear import Coreset
from saddleback.certificates.bounds.tabular import AllPairs

BY_NAME: Final[dict[str, BoundMethod]] = {"all-pairs": AllPairs(), "coreset": Coreset()}

__all__ = ["BY_NAME", "AllPairs", "Bound", "BoundMethod", "BoundPlan", "Coreset"]
