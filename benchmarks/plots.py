"""Curves and comparisons as SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from benchmarks.goals import QUESTIONS
from benchmarks.markdown import figure as figure_of
from benchmarks.results import Curve, Peers, Report

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Can be read on a white page and on a dark one.
GREY = "#7a7a7a"
plt.rcParams.update(
    {
        "svg.hashsalt": "django-hilo",
        "svg.fonttype": "none",
        "figure.figsize": (8, 4.5),
        "savefig.transparent": True,
        "legend.framealpha": 0,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), GREY),
        **dict.fromkeys(("xtick.color", "ytick.color"), GREY),
    }
)
UNDATED = {"Date": None}
PLAIN = FuncFormatter(lambda value, _: figure_of(value))


def draw(report: Report, folder: Path) -> None:
    """Write the plot of each question."""
    for old in folder.glob("*.svg"):
        old.unlink()
    wanted = {question.picture for question in QUESTIONS if question.picture}
    for each in report.of(Curve):
        if each.name in wanted:
            curve(each, folder / f"{each.name}.svg")
    for each in report.of(Peers):
        if each.name in wanted:
            dots(each, folder / f"{each.name}.svg")


def curve(found: Curve, path: Path) -> None:
    """Draw series over logarithmic axes."""
    figure, axes = plt.subplots()
    for name, points in found.series.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xscale="log", yscale="log", xlabel=found.x, ylabel=found.y)
    _label(axes.yaxis)
    axes.set_xticks(sorted({x for points in found.series.values() for x, _ in points}))
    axes.xaxis.set_major_formatter(PLAIN)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelrotation=30)
    axes.set_title(found.title)
    axes.legend()
    _save(figure, path)


def dots(found: Peers, path: Path) -> None:
    """Draw medians from the best, on top, with the least and the most."""
    ordered = sorted(
        found.candidates.items(), key=lambda item: item[1].median, reverse=True
    )
    medians = [given.median for _, given in ordered]
    reach = [
        [given.median - given.least for _, given in ordered],
        [given.most - given.median for _, given in ordered],
    ]
    figure, axes = plt.subplots()
    axes.errorbar(medians, [name for name, _ in ordered], xerr=reach, fmt="o")
    axes.set(xscale="log", xlabel=found.unit)
    _label(axes.xaxis)
    axes.set_title(found.title)
    _save(figure, path)


def _label(axis: Axis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(PLAIN)
    axis.set_minor_formatter(NullFormatter())
    axis.grid(visible=True, which="major", alpha=0.3)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata=UNDATED)
    plt.close(figure)
