"""Alg. 1 and its parts: the loop, the oracles it asks, the duals that steer it, the small programs behind them."""
