"""The one call: from a problem and a simulator to a solution with its proof."""
