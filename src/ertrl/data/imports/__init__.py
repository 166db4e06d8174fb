"""Data of others as datasets, and datasets for others.

`logs` takes whatever a user has and finds out what it is: `tables` reads files and frames,
`columns` finds out what each column means, `rows` cuts rows into episodes. `minari` exchanges
datasets with that library, `releases` reads what papers released; `common` writes what all of them
found.
"""
