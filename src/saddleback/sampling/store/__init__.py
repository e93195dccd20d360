"""Samples on disk: without pickle, checked on the way in and whole on the way out."""
