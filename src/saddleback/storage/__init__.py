"""Files: problem tables and policies, without pickle, checked on the way in and whole on the way out."""

from saddleback.storage.policy_file import load_mixture, save_mixture
from saddleback.storage.table_file import load_table, save_table

__all__ = ["load_mixture", "load_table", "save_mixture", "save_table"]
