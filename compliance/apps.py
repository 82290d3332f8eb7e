"""The room of what is owed, and the proof."""

from django.apps import AppConfig


class ComplianceConfig(AppConfig):
    """Entities, deadlines, the law and the ledger."""

    name = "compliance"

    def ready(self) -> None:
        import compliance.checks  # noqa: F401 - registers the start-up checks
