"""Datasets on disk and batches drawn from them."""

from ertrl.data.dataset import Dataset, TaskData
from ertrl.data.sampler import Sampler
from ertrl.data.writer import DatasetWriter, TaskRecord

__all__ = ["Dataset", "DatasetWriter", "Sampler", "TaskData", "TaskRecord"]
