"""Behaviour data: train policies in simulation, record them from poor to expert.

    config.py       settings
    collect.py      the whole way: train, record, measure the references, seal the dataset
    trainer.py      blocks of simulation and updates, on all tasks at once
    policies.py     one network for all tasks, or one per task; styles
    sac.py          soft actor-critic
    buffer.py       what the policies have seen so far
    scripted.py     an expert with noise in place of policies that learn
    distance.py     how much the policies differ
    savepoints.py   a killed collection goes on where it was
    cost.py         time, memory and disk, known beforehand

Nothing is imported here: settings are wanted where JAX is not.
"""
