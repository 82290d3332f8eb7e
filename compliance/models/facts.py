"""Dated facts about a registration that its duties count from."""

from django.db import models
from django.db.models import Q

from compliance.history import tracked
from compliance.models.access import OwnedByRegistration
from compliance.models.entities import Registration


class RegistrationEventQuerySet(OwnedByRegistration):
    """Events of registrations."""

    def holding(self) -> "RegistrationEventQuerySet":
        """Those that nobody has taken back."""
        return self.filter(retracted_at__isnull=True)


class RegistrationEvent(models.Model):
    """Something that happened on a day and that a duty counts from. Taken back, the row stays."""

    class Name(models.TextChoices):
        """The events of the due rules; formation is a date of the entity itself."""

        LAST_FILING = "last_filing", "Last filing, renewal or activation"
        REGISTRY_NOTICE = "registry_notice", "Notice by the registry"
        PERIOD_END = "period_end", "End of a reporting period"
        POP_END = "pop_end", "End of an award's period of performance"
        FINAL_FINANCIAL_REPORT = "final_financial_report", "Final financial report handed in"
        AUDITOR_REPORT = "auditor_report", "Auditor's report received"

    registration = models.ForeignKey(Registration, on_delete=models.PROTECT, related_name="events")
    name = models.CharField(max_length=40, choices=Name.choices)
    happened_on = models.DateField()
    retracted_at = models.DateTimeField(null=True, blank=True, editable=False)
    objects = RegistrationEventQuerySet.as_manager()
    history = tracked()

    class Meta:
        verbose_name = "event of a registration"
        verbose_name_plural = "events of registrations"
        ordering = ["-happened_on", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["registration", "name", "happened_on"],
                condition=Q(retracted_at__isnull=True),
                name="an_event_of_a_registration_happens_once_on_a_day",
            ),
            models.CheckConstraint(
                condition=Q(
                    name__in=[
                        "last_filing", "registry_notice", "period_end", "pop_end",
                        "final_financial_report", "auditor_report",
                    ]
                ),
                name="an_event_is_one_of_the_due_rules",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.get_name_display()} on {self.happened_on}"
