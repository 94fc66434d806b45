"""Draws what bench/contexts.py has measured: python plot_contexts.py JSON SVG"""

import json
from pathlib import Path
import statistics
import sys

import matplotlib
from matplotlib import pyplot

PANELS = (("cpu", "processor time each, ms"), ("pss", "memory each, MB"))


def main(source, target):
    values = json.loads(Path(source).read_text())
    names = list(dict.fromkeys(name for of in values.values() for name in of))
    matplotlib.rcParams["svg.hashsalt"] = "extisolate"
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(10, 3.6), layout="constrained")
    for axis, (what, label) in zip(axes, PANELS, strict=True):
        for name in names:
            points = [(int(n), statistics.median(of[name][what])) for n, of in values.items()
                      if isinstance(of.get(name), dict)]
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name,
                      linewidth=2.5 if name.startswith("contexts") else 1)
        axis.set(xscale="log", xlabel="copies", ylabel=label, ylim=(0, None))
        axis.set_xticks([int(n) for n in values], values)
        axis.minorticks_off()
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize="small")
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
