"""The ledger and the events, to read."""

import json
from typing import Any

from django.contrib import admin
from django.http import (
    HttpRequest,
)
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from compliance.admin_base import (
    ReadOnly,
    ScopedAdmin,
    ScopedRelatedFilter,
)
from compliance.models import (
    Event,
    LedgerEntry,
    LedgerHead,
)


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnly, ScopedAdmin):
    """The record. Nobody writes here; the database refuses it too."""

    list_display = ["seq", "at", "type", "actor", "subject"]
    list_filter = ["type", ("portfolio", ScopedRelatedFilter)]
    search_fields = ["subject", "actor", "type", "digest"]
    show_full_result_count = False
    fields = ["seq", "at", "type", "actor", "subject", "portfolio", "body_shown", "prev", "digest"]

    @display(description="entry")
    def body_shown(self, row: LedgerEntry) -> SafeString:
        """The canonical bytes, indented for reading."""
        pretty = json.dumps(json.loads(bytes(row.body)), indent=2, ensure_ascii=False)
        return format_html('<pre class="gs-pre">{}</pre>', pretty)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All of it."""
        return self.fields


@admin.register(LedgerHead)
class LedgerHeadAdmin(ReadOnly, ScopedAdmin):
    """The end of the chain, to compare with what was kept elsewhere."""

    list_display = ["size", "digest"]


@admin.register(Event)
class EventAdmin(ReadOnly, ScopedAdmin):
    """What happened, and whether it was told."""

    list_display = ["at", "type", "subject", "handled_at"]
    list_filter = ["type", ("handled_at", admin.EmptyFieldListFilter)]
    search_fields = ["subject", "type"]
    show_full_result_count = False
