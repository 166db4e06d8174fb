"""Datasets on disk, what people do with them, and batches drawn from them.

layout.py          the format: arrays, manifest, checksums
writer.py          a dataset grows, and is sealed
dataset.py         ... and is read, memory-mapped
maps.py            which of its files are open
numbers.py         which of its numbers the format forbids
sampler.py         batches for training
scaling.py         what observations and rewards are scaled by
same_family.py     is the family still the one that the data is of?
info.py card.py    what is in a dataset, for people
hub.py             Hugging Face
imports/           data of others: logs, Minari, released datasets
"""

from ertrl.data.card import write_card
from ertrl.data.dataset import Dataset, TaskData
from ertrl.data.hub import pull, push
from ertrl.data.imports.logs import import_logs
from ertrl.data.imports.minari import export_minari
from ertrl.data.info import describe
from ertrl.data.sampler import Sampler
from ertrl.data.writer import DatasetWriter, Description, TaskRecord

__all__ = [
    "Dataset",
    "DatasetWriter",
    "Description",
    "Sampler",
    "TaskData",
    "TaskRecord",
    "describe",
    "export_minari",
    "import_logs",
    "pull",
    "push",
    "write_card",
]
