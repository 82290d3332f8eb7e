"""The room of what we file."""

from django.apps import AppConfig


class FilingsConfig(AppConfig):
    """Filings, batches and standing checks."""

    name = "filings"
