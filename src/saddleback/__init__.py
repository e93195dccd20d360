"""saddleback: constrained decision problems with a simulator."""

from saddleback._version import __version__

__all__ = ["__version__"]
