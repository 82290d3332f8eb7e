"""The room through which we reach the outside."""

from django.apps import AppConfig


class PortalsConfig(AppConfig):
    """Cards, adapters, intents and lanes."""

    name = "portals"
