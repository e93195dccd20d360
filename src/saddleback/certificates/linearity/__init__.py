"""Linearity of the problem in its features: tests that can refute it, and how far from its candidates it was asked."""
