"""Problem files in TOML: a simulator named by import path, and everything around it in the user's units."""

from saddleback.instances.problem_file.reading import load_problem

__all__ = ["load_problem"]
