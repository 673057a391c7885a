"""Plain tables."""

from __future__ import annotations

from collections.abc import Mapping


def show(title: str, figures: Mapping[str, object]) -> None:
    """Print names and figures in two columns."""
    print(f"\n{title}")
    width = max(len(name) for name in figures)
    for name, figure in figures.items():
        text = f"{figure:,}" if isinstance(figure, int) else str(figure)
        print(f"  {name:<{width}}  {text:>12}", flush=True)
