"""Commands whose output may be read by a program that stops early, such as head."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class PipedCommand(BaseCommand):
    """Ends in silence if nobody reads the rest."""

    def execute(self, *args: Any, **options: Any) -> Any:
        try:
            result = super().execute(*args, **options)
            self.stdout.flush()  # else Python would, at its end
            return result
        except BrokenPipeError:
            # Python writes what is left when it ends, and would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
