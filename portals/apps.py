"""The room through which we reach the outside."""

from django.apps import AppConfig


class PortalsConfig(AppConfig):
    """Cards, adapters, intents and lanes."""

    name = "portals"

    def ready(self) -> None:
        import portals.checks  # noqa: F401 - registers the start-up checks
