"""Curves and comparisons as SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from benchmarks.results import Curve, Peers, Report

mpl.use("Agg")

from matplotlib import pyplot as plt

plt.rcParams.update({"svg.hashsalt": "django-hilo", "figure.figsize": (7, 4)})
UNDATED = {"Date": None}


def draw(report: Report, folder: Path) -> None:
    """Write a file for each curve, and one for the first comparison."""
    for each in report.of(Curve):
        curve(each, folder / f"{each.name}.svg")
    compared = report.of(Peers)
    if compared:
        bars(compared[0], folder / "peers.svg")


def curve(found: Curve, path: Path) -> None:
    """Draw series over logarithmic axes."""
    figure, axes = plt.subplots()
    for name, points in found.series.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel=found.x, ylabel=found.y)
    axes.set_title(found.title)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    _save(figure, path)


def bars(found: Peers, path: Path) -> None:
    """Draw candidates as bars, the fastest on top, with least and most."""
    ordered = sorted(
        found.candidates.items(), key=lambda item: item[1].median, reverse=True
    )
    medians = [given.median for _, given in ordered]
    reach = [
        [given.median - given.least for _, given in ordered],
        [given.most - given.median for _, given in ordered],
    ]
    figure, axes = plt.subplots()
    axes.barh([name for name, _ in ordered], medians, xerr=reach)
    axes.set(xscale="log", xlabel=found.unit)
    axes.set_title(found.title)
    _save(figure, path)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata=UNDATED)
    plt.close(figure)
