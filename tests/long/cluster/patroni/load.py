"""Workers that find the primary by themselves."""

from pathlib import Path

from tests.long.cluster.load import Load
from tests.long.cluster.patroni.cluster import Cluster

# Text, integer and gapless ids.
LABELS = "records.Order", "numbers.Item", "records.Letter"


class PatroniLoad(Load):
    """Six processes: three ask libpq for the primary, three HAProxy."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(folder)
        self._cluster = cluster

    def start_all(self) -> None:
        """Start all."""
        for by_proxy in (False, True):
            self.start(3, self._cluster.environment(by_proxy), *LABELS)

    def wait_for_progress(self) -> None:
        """Wait until each worker has several more ranges, by turns."""
        for _ in range(3):
            self.wait_for("given", count=9)
