"""The families. A file of this folder with a tuple `FAMILIES` of classes adds families.

Importing them is cheap: MuJoCo loads when the first simulation starts.
"""
