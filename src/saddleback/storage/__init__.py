"""Files: problem tables, policies and samples, without pickle, checked on the way in and whole on the way out."""

from saddleback.storage.layout import Layout
from saddleback.storage.policy_file import load_mixture, save_mixture
from saddleback.storage.pooling import pool
from saddleback.storage.sample_store import SampleStore, verify_store
from saddleback.storage.table_file import load_table, save_table

__all__ = ["Layout", "SampleStore", "load_mixture", "load_table", "pool", "save_mixture", "save_table", "verify_store"]
