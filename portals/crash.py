"""Named points at which a chaos test can kill the program for real."""

import os
import signal

from django.conf import settings


def crash_point(name: str) -> None:
    """Die here, without a word, if the settings say so."""
    if name == settings.CRASH_AT:
        os.kill(os.getpid(), signal.SIGKILL)
