"""The question: the constrained MDP as the agent knows it, its spaces and its policies."""
