"""How a benchmark tells what it measured: one row for each figure, beside what it must reach.

Exit statuses of all benchmarks: 0 every target met, MISSED it ran to its end and a figure is below its target, anything
else it is broken.
"""

import statistics

MISSED = 3


def ratio_of(ours, theirs):
    """The median of the rounds' ratios: what disturbs a round disturbs both."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


class Table:
    """Prints rows as they come and remembers whether a target was missed."""

    def __init__(self):
        self.missed = False
        print(f"{'what':<66} {'figure':>14}  {'target':<16}", flush=True)

    def figure(self, what, figure):
        """A row with nothing to reach."""
        print(f"{what:<74} {figure:>14}", flush=True)

    def ratio(self, what, value, target):
        """A row that must reach `target` times its rival."""
        self.judge(what, f"{value:.2f}x", f"least {target:g}x", value >= target)

    def judge(self, what, figure, target, met):
        self.missed |= not met
        print(f"{what:<74} {figure:>14}  {'at ' + target:<15} {'met' if met else 'MISSED'}", flush=True)

    def status(self):
        return MISSED if self.missed else 0
