"""Portals, their lanes, and what is to be done at them: intents, attempts, resolutions."""

from datetime import datetime

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from compliance.encryption import EncryptedTextField
from compliance.history import tracked
from compliance.models import Portfolio, ScopedQuerySet


class Portal(models.Model):
    """An outside system. Its card says what it is; this row what an operator decided about it."""

    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=200)
    jurisdiction = models.CharField(max_length=6, blank=True)
    is_enabled = models.BooleanField(
        default=True, help_text="The kill switch: off, and nothing is sent to this portal."
    )
    history = tracked()

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.title


class Lane(models.Model):
    """One portal's queue at work, under one owner at a time."""

    portal = models.OneToOneField(Portal, on_delete=models.CASCADE, related_name="lane")
    epoch = models.PositiveBigIntegerField(default=0, help_text="Rises with each new owner.")
    owner = models.CharField(max_length=120, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    quiet_since = models.DateTimeField(
        null=True, blank=True, help_text="No request of ours has been under way since then."
    )
    paused_until = models.DateTimeField(null=True, blank=True)
    pause_cause = models.CharField(max_length=300, blank=True)
    needs_person = models.BooleanField(
        default=False, help_text="Stopped until a person resumes it."
    )
    woken_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["portal__slug"]

    def __str__(self) -> str:
        return f"Lane of {self.portal}"


class LimitBlock(models.Model):
    """Requests set aside, before they are sent, from a limit whose window outlives a process."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="limit_blocks")
    seconds = models.FloatField(help_text="The limit's window.")
    requests = models.PositiveIntegerField()
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="Since then none of them can be under way."
    )

    class Meta:
        indexes = [
            models.Index(fields=["lane", "seconds", "closed_at"], name="limit_block_by_age")
        ]

    def __str__(self) -> str:
        return f"{self.requests} requests of {self.lane}"


class IntentQuerySet(ScopedQuerySet):
    """Intents, and the questions lanes and people ask of them."""

    def ready(self, portal_id: int, *, now: datetime) -> "IntentQuerySet":
        """What a lane may take up, in its order: class, cost of lateness, deadline."""
        return self.filter(
            portal_id=portal_id, state=Intent.State.READY, not_before__lte=now
        ).order_by("rank", "-cost", "deadline_at", "id")

    def to_ask_about(self, portal_id: int, *, now: datetime) -> "IntentQuerySet":
        """What was sent and is not settled: in doubt, or received and not yet decided."""
        return self.filter(
            portal_id=portal_id,
            state__in=[Intent.State.IN_DOUBT, Intent.State.RECEIPTED],
            not_before__lte=now,
        ).order_by("not_before", "id")

    def live(self) -> "IntentQuerySet":
        """Not final."""
        return self.filter(state__in=Intent.LIVE)

    def fallout(self) -> "IntentQuerySet":
        """Waiting for a person."""
        return self.filter(state=Intent.State.FALLOUT)


class Intent(models.Model):
    """One thing to be done at one portal, exactly once."""

    class State(models.TextChoices):
        """Where it stands; final are accepted, rejected and withdrawn."""

        READY = "ready", "Ready"
        ARMED = "armed", "Armed"
        RECEIPTED = "receipted", "Receipted"
        ACCEPTED = "accepted", "Accepted"
        REJECTED = "rejected", "Rejected"
        IN_DOUBT = "in_doubt", "In doubt"
        FALLOUT = "fallout", "Fallout"
        WITHDRAWN = "withdrawn", "Withdrawn"

    class Rank(models.IntegerChoices):
        """The order in a lane."""

        RECONCILE = 0, "Reconcile"
        URGENT = 1, "Urgent"
        BULK = 2, "Bulk"
        POLL = 3, "Poll"

    LIVE = ("ready", "armed", "receipted", "in_doubt", "fallout")

    kind = models.CharField(max_length=40)
    subject_id = models.PositiveBigIntegerField()
    portfolio = models.ForeignKey(Portfolio, on_delete=models.PROTECT, db_index=False)
    portal = models.ForeignKey(Portal, on_delete=models.PROTECT, db_index=False)
    is_read = models.BooleanField(help_text="A repeatable look, never in doubt.")
    idempotency_key = models.CharField(max_length=64)
    payload_sha256 = models.CharField(max_length=64)
    trace_id = models.CharField(max_length=32)
    state = models.CharField(max_length=10, choices=State.choices, default=State.READY)
    rank = models.PositiveSmallIntegerField(choices=Rank.choices, default=Rank.BULK)
    cost = models.PositiveIntegerField(default=0, help_text="Cents that an hour of delay costs.")
    deadline_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(default=timezone.now)
    epoch = models.PositiveBigIntegerField(default=0, help_text="The lane's epoch that armed it.")
    tries = models.PositiveSmallIntegerField(default=0, help_text="Attempts of any kind.")
    first_sent_at = models.DateTimeField(null=True, blank=True)
    last_sent_at = models.DateTimeField(null=True, blank=True)
    sends = models.PositiveSmallIntegerField(default=0, help_text="Times it may have arrived.")
    resend_by = models.DateTimeField(
        null=True, blank=True, help_text="After this the portal no longer recognises a repeat."
    )
    doubts = models.PositiveSmallIntegerField(
        default=0, help_text="Times the portal left us in doubt; never taken back."
    )
    absences = models.PositiveSmallIntegerField(
        default=0, help_text="Look-ups in a row that did not find it."
    )
    number = models.CharField(max_length=200, blank=True, help_text="The portal's number for it.")
    cause = models.CharField(max_length=40, blank=True, help_text="Why it is where it is.")
    detail = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True, blank=True)
    claimed_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    claimed_at = models.DateTimeField(null=True, blank=True)
    objects = IntentQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                "portal", "rank", F("cost").desc(), "deadline_at", "id",
                condition=Q(state="ready"), name="intent_in_lane_order",
            ),
            models.Index(
                fields=["portal", "not_before", "id"],
                condition=Q(state__in=["in_doubt", "receipted"]), name="intent_to_ask_about",
            ),
            models.Index(
                fields=["portal", "epoch"], condition=Q(state="armed"), name="intent_armed"
            ),
            models.Index(
                fields=["portfolio", "cause", "-cost"],
                condition=Q(state="fallout"), name="intent_in_fallout",
            ),
        ]  # fmt: skip
        permissions = [
            ("work_fallout", "Can claim and resolve what waits in fallout"),
            ("approve_resend", "Can approve that something is sent again"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["idempotency_key"], name="a_key_names_one_intent"),
            models.UniqueConstraint(
                fields=["subject_id", "kind"],
                condition=Q(state__in=["ready", "armed", "receipted", "in_doubt", "fallout"]),
                name="a_subject_has_one_live_intent_of_a_kind",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["ready", "armed", "receipted", "in_doubt", "fallout"])
                | Q(settled_at__isnull=False),
                name="a_final_intent_says_when",
            ),
            models.CheckConstraint(
                condition=~Q(state="in_doubt") | Q(is_read=False), name="a_read_is_never_in_doubt"
            ),
            models.CheckConstraint(
                condition=~Q(state="armed") | Q(epoch__gt=0), name="only_an_owner_arms"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id} ({self.state})"

    @property
    def is_final(self) -> bool:
        """Nothing moves it any more."""
        return self.state not in self.LIVE


class IntentPayload(models.Model):
    """The frozen bytes of an intent and what its answer must name. Written once."""

    intent = models.OneToOneField(
        Intent, on_delete=models.PROTECT, primary_key=True, related_name="payload"
    )
    wire_bytes = models.BinaryField()
    entity_number = models.CharField(max_length=50, blank=True)
    form = models.CharField(max_length=60, blank=True)
    period = models.CharField(max_length=20, blank=True)
    attachments = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{len(self.wire_bytes)} bytes of {self.intent_id}"


class Attempt(models.Model):
    """One try at an intent, written before its point of no return is sent."""

    class Outcome(models.TextChoices):
        """How it ended; open while nothing is known, which is what a crash leaves behind."""

        OPEN = "open", "Open"
        NOT_SENT = "not_sent", "Not sent"
        ACCEPTED = "accepted", "Accepted"
        RECEIVED = "received", "Received"
        REJECTED = "rejected", "Rejected"
        UNAVAILABLE = "unavailable", "Unavailable"
        IN_DOUBT = "in_doubt", "In doubt"
        BLOCKED = "blocked", "Blocked"
        CHANGED = "changed", "Changed"
        ANSWERED = "answered", "Answered"
        NOT_FOUND = "not_found", "Not found"

    class Purpose(models.TextChoices):
        """What it was for."""

        SEND = "send", "Send"
        LOOK_UP = "look_up", "Look up"
        READ = "read", "Read"

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="attempts")
    no = models.PositiveSmallIntegerField()
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    epoch = models.PositiveBigIntegerField()
    payload_sha256 = models.CharField(max_length=64)
    armed_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=15, choices=Outcome.choices, default=Outcome.OPEN)
    category = models.CharField(max_length=20, blank=True)
    rule = models.CharField(max_length=80, blank=True)
    detail = models.TextField(blank=True)
    answer_sha256 = models.CharField(max_length=64, blank=True)
    exchanges = models.JSONField(default=list, help_text="Requests and answers, secrets redacted.")

    class Meta:
        ordering = ["intent", "no"]
        constraints = [
            models.UniqueConstraint(fields=["intent", "no"], name="attempts_are_numbered"),
            models.UniqueConstraint(
                fields=["intent"],
                condition=Q(outcome="open"),
                name="one_attempt_is_open_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(outcome="open", ended_at__isnull=True)
                | (~Q(outcome="open") & Q(ended_at__isnull=False)),
                name="an_ended_attempt_says_when",
            ),
        ]

    def __str__(self) -> str:
        return f"Attempt {self.no} of {self.intent_id}: {self.outcome}"


class Resolution(models.Model):
    """What a person decided about an intent in fallout.

    To send again, or to give up, what may have arrived takes a second person.
    """

    class Verb(models.TextChoices):
        """The ways out of fallout."""

        REPLAY = "replay", "Send again"
        ADOPT = "adopt", "Adopt as accepted"
        WITHDRAW = "withdraw", "Withdraw"

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="resolutions")
    verb = models.CharField(max_length=10, choices=Verb.choices)
    reason = models.TextField(help_text="What you know and how; goes on the ledger.")
    number = models.CharField(max_length=200, blank=True)
    requested_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(default=timezone.now)
    approved_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    was_carried_out = models.BooleanField(default=False)
    history = tracked()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["intent"], condition=Q(closed_at__isnull=True),
                name="an_intent_has_one_open_resolution",
            ),
            models.CheckConstraint(
                condition=Q(approved_by__isnull=True) | ~Q(approved_by=F("requested_by")),
                name="a_resend_is_approved_by_another_person",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.get_verb_display()}: {self.intent}"


class Credential(models.Model):
    """What a portfolio logs in with at a portal. Encrypted; shown to nobody."""

    portfolio = models.ForeignKey(Portfolio, on_delete=models.CASCADE, null=True, blank=True)
    portal = models.ForeignKey(Portal, on_delete=models.CASCADE)
    username = models.CharField(max_length=200, blank=True)
    secret = EncryptedTextField(blank=True, default="")
    expires_on = models.DateField(null=True, blank=True)
    objects = ScopedQuerySet.as_manager()
    history = tracked(excluded_fields=["secret"])

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["portfolio", "portal"], name="a_portfolio_has_one_credential_at_a_portal"
            ),
            models.UniqueConstraint(
                fields=["portal"],
                condition=Q(portfolio__isnull=True),
                name="a_portal_has_one_credential_for_all",
            ),
        ]

    def __str__(self) -> str:
        return f"Credential for {self.portal}"


class InstallationKey(models.Model):
    """The secret that idempotency keys derive from: made once, in every backup, never changed."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    secret = models.BinaryField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="there_is_one_installation_key")
        ]

    def __str__(self) -> str:
        return "Installation key"
