"""Wiring."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Settings, URLs, navigation and the demo."""

    name = "config"
