"""Limits of the frozen mixture's own values: from rollouts alone, and tighter ones where P is linear in the features."""
