"""Files: problem tables, policies and samples, without pickle, checked on the way in and whole on the way out."""

from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.pooling import pool
from saddleback.sampling.store.sample_store import SampleStore, verify_store

__all__ = ["Layout", "SampleStore", "pool", "verify_store"]
