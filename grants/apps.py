"""The room of what we apply for."""

from django.apps import AppConfig


class GrantsConfig(AppConfig):
    """Funders, opportunities and grant submissions."""

    name = "grants"
