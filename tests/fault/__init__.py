"""Attacks on everything that is written: crashes, damage, hostile files, hostile words.

`benchmarks/faults.py` runs all of them in full and keeps the figures; `tests/test_fault.py` runs a
few of each. Everything is drawn from fixed seeds.
"""

import conftest  # noqa: F401  how programs are compiled is said before JAX starts, in all processes
