"""One factory for each model; a filing's factory brings all that it stands on."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import factory
from django.contrib.auth.models import User
from django.utils import timezone
from factory.django import DjangoModelFactory

from compliance.models import (
    Address,
    Deadline,
    Entity,
    Membership,
    Notice,
    NoticeCopy,
    Officer,
    Portfolio,
    Registration,
    RegistrationEvent,
    ShareClass,
)
from filings.models import Batch, Filing, StatusCheck
from grants.models import Attachment, Funder, GrantSubmission, Opportunity
from portals.models import Credential, Portal

PORTAL_OF = {"US-DE": "us-de", "US-CA": "us-ca", "US-NY": "us-ny"}
FORM_OF = {
    "US-DE": "annual-report",
    "US-CA": "statement-of-information",
    "US-NY": "biennial-statement",
}

ANSWERS: dict[str, dict[str, Any]] = {
    "annual-report": {
        "principal_address": "12 Harbor Street, Wilmington, DE, 19801",
        "officers": [{"name": "Dana Reyes", "title": "President", "address": ""}],
    },
    "annual-tax": {},
    "statement-of-information": {
        "principal_address": "12 Harbor Street, Wilmington, DE, 19801",
        "registered_agent": "Harbor Agents LLC",
        "officers": [{"name": "Dana Reyes", "title": "President", "address": ""}],
    },
    "biennial-statement": {
        "chief_executive": "Dana Reyes",
        "principal_address": "12 Harbor Street, Wilmington, DE, 19801",
        "process_address": "12 Harbor Street, Wilmington, DE, 19801",
    },
}


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"user{n}")
    is_staff = True


class PortfolioFactory(DjangoModelFactory[Portfolio]):
    class Meta:
        model = Portfolio

    slug = factory.Sequence(lambda n: f"portfolio-{n}")
    name = factory.Sequence(lambda n: f"Portfolio {n}")


class MembershipFactory(DjangoModelFactory[Membership]):
    class Meta:
        model = Membership

    portfolio = factory.SubFactory(PortfolioFactory)
    user = factory.SubFactory(UserFactory)


class EntityFactory(DjangoModelFactory[Entity]):
    class Meta:
        model = Entity
        skip_postgeneration_save = True

    portfolio = factory.SubFactory(PortfolioFactory)
    name = factory.Sequence(lambda n: f"Acme Widgets {n}, Inc.")
    kind = Entity.Kind.CORPORATION
    home_jurisdiction = "US-DE"
    formed_on = date(2019, 3, 14)
    officer = factory.RelatedFactory("tests.factories.OfficerFactory", "entity")
    address = factory.RelatedFactory("tests.factories.AddressFactory", "entity")


class OfficerFactory(DjangoModelFactory[Officer]):
    class Meta:
        model = Officer

    entity = factory.SubFactory(EntityFactory, officer=None)
    name = "Dana Reyes"
    title = "President"


class AddressFactory(DjangoModelFactory[Address]):
    class Meta:
        model = Address

    entity = factory.SubFactory(EntityFactory, address=None)
    use = Address.Use.PRINCIPAL
    street = "12 Harbor Street"
    city = "Wilmington"
    region = "DE"
    postal_code = "19801"


class ShareClassFactory(DjangoModelFactory[ShareClass]):
    class Meta:
        model = ShareClass

    entity = factory.SubFactory(EntityFactory)
    authorized = 1500


class RegistrationFactory(DjangoModelFactory[Registration]):
    class Meta:
        model = Registration

    entity = factory.SubFactory(EntityFactory)
    jurisdiction = "US-DE"
    file_number = factory.Sequence(lambda n: f"{7_000_000 + n}")
    registered_on = date(2019, 3, 14)
    registered_agent = "Harbor Agents LLC"


class RegistrationEventFactory(DjangoModelFactory[RegistrationEvent]):
    class Meta:
        model = RegistrationEvent

    registration = factory.SubFactory(RegistrationFactory)
    name = RegistrationEvent.Name.REGISTRY_NOTICE
    happened_on = date(2026, 10, 1)


class DeadlineFactory(DjangoModelFactory[Deadline]):
    class Meta:
        model = Deadline

    registration = factory.SubFactory(RegistrationFactory)
    duty = "annual-report"
    title = "Annual report"
    period = "2026"
    due_on = factory.LazyFunction(lambda: timezone.localdate() + timedelta(days=30))
    fee = Decimal("50.00")
    portal = factory.LazyAttribute(lambda o: PORTAL_OF[o.registration.jurisdiction])
    form = factory.LazyAttribute(lambda o: FORM_OF[o.registration.jurisdiction])
    citation = "8 Del. C. § 502"
    confidence = "high"
    pack_sha256 = "0" * 64


class NoticeFactory(DjangoModelFactory[Notice]):
    class Meta:
        model = Notice

    deadline = factory.SubFactory(DeadlineFactory)
    rung = "owner"
    days_left = 30
    is_unowned = False


class NoticeCopyFactory(DjangoModelFactory[NoticeCopy]):
    class Meta:
        model = NoticeCopy

    notice = factory.SubFactory(NoticeFactory)
    user = factory.SubFactory(UserFactory)


class FilingFactory(DjangoModelFactory[Filing]):
    """A complete draft, prepared by somebody; approve it with the service to go on."""

    class Meta:
        model = Filing

    deadline = factory.SubFactory(DeadlineFactory)
    portfolio = factory.LazyAttribute(lambda o: o.deadline.registration.entity.portfolio)
    portal = factory.LazyAttribute(lambda o: o.deadline.portal)
    form = factory.LazyAttribute(lambda o: o.deadline.form)
    fee = factory.LazyAttribute(lambda o: o.deadline.fee)
    prepared_by = factory.SubFactory(UserFactory)
    answers = factory.LazyAttribute(lambda o: ANSWERS[o.form])


class BatchFactory(DjangoModelFactory[Batch]):
    class Meta:
        model = Batch

    portfolio = factory.SubFactory(PortfolioFactory)
    name = "Season"
    prepared_by = factory.SubFactory(UserFactory)


class StatusCheckFactory(DjangoModelFactory[StatusCheck]):
    class Meta:
        model = StatusCheck

    registration = factory.SubFactory(RegistrationFactory)
    portal = "us-de"
    requested_by = factory.SubFactory(UserFactory)


class PortalFactory(DjangoModelFactory[Portal]):
    class Meta:
        model = Portal
        django_get_or_create = ("slug",)

    slug = "us-de"
    title = "Delaware Division of Corporations"
    jurisdiction = "US-DE"


class CredentialFactory(DjangoModelFactory[Credential]):
    class Meta:
        model = Credential

    portal = factory.SubFactory(PortalFactory)
    username = "rehearsal"
    secret = "rehearsal"


class FunderFactory(DjangoModelFactory[Funder]):
    class Meta:
        model = Funder
        django_get_or_create = ("slug",)

    slug = "bright-futures"
    name = "Bright Futures Foundation"
    portal = "bright-futures"


class OpportunityFactory(DjangoModelFactory[Opportunity]):
    class Meta:
        model = Opportunity

    funder = factory.SubFactory(FunderFactory)
    number = factory.Sequence(lambda n: f"BF-{n}")
    title = "Reading rooms"
    closes_at = datetime(2099, 1, 1, tzinfo=UTC)


class GrantSubmissionFactory(DjangoModelFactory[GrantSubmission]):
    class Meta:
        model = GrantSubmission

    opportunity = factory.SubFactory(OpportunityFactory)
    entity = factory.SubFactory(EntityFactory, kind=Entity.Kind.NONPROFIT)
    portfolio = factory.LazyAttribute(lambda o: o.entity.portfolio)
    prepared_by = factory.SubFactory(UserFactory)


class AttachmentFactory(DjangoModelFactory[Attachment]):
    class Meta:
        model = Attachment

    submission = factory.SubFactory(GrantSubmissionFactory)
    name = "budget.pdf"
    content_type = "application/pdf"
    size = 0
    sha256 = "0" * 64
