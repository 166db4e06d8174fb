"""Is one method better than another? Three seeds of each, a test, and a report that says so.

A difference between two runs says little: seeds differ, too. Welch's test compares the means over
seeds; the report does so for every pair of methods, group of tasks and protocol, and corrects for
their number.
"""

import numpy as np
from scipy import stats

import ertrl

METHODS, SEEDS, CELL = ("er-trl", "focal"), range(3), "offline/test-id"

data = ertrl.collect("point-robot")
runs = {m: [ertrl.train(m, data, seed=seed) for seed in SEEDS] for m in METHODS}
scores = {m: [ertrl.evaluate(run).scores[CELL] for run in runs[m]] for m in METHODS}

for method, values in scores.items():
    print(f"{method:8} {CELL} {np.mean(values):6.1f}  seeds {np.round(values, 1)}")
test = stats.ttest_ind(scores[METHODS[0]], scores[METHODS[1]], equal_var=False)
low, high = test.confidence_interval()
print(f"difference: 95% interval [{low:.1f}, {high:.1f}], p = {test.pvalue:.2f}")
print("told apart" if test.pvalue < 0.05 else "no detectable difference")

print("open", ertrl.report([run for some in runs.values() for run in some]))
