"""What a chunk of rows changes, worked out against what is known, then written in bulk."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import models

from compliance import ledger
from compliance.errors import NotAllowed
from compliance.history import remember
from compliance.imports.facts import EventKey, known_events, new_events, refuse_events
from compliance.imports.rows import EntityRow, RegistrationCells
from compliance.models import (
    Address,
    Entity,
    Officer,
    Portfolio,
    Registration,
    RegistrationEvent,
)

Row = TypeVar("Row", bound=models.Model)
REASON = "Imported from a file"
REQUIRED = {
    "name": "name", "kind": "type", "home_jurisdiction": "home_jurisdiction",
    "formed_on": "formed_on",
}  # fmt: skip
COLUMN_OF = {
    "kind": "type", "fiscal_year_end_month": "fiscal_year_end",
    "fiscal_year_end_day": "fiscal_year_end",
}  # fmt: skip


@dataclass(eq=False)
class Dossier:
    """An entity with what belongs to it, as it is and as the rows so far have changed it."""

    entity: Entity
    is_new: bool = False
    registrations: list[Registration] = field(default_factory=list)
    officers: list[Officer] = field(default_factory=list)
    address: Address | None = None
    events: set[EventKey] = field(default_factory=set)
    # What rows of this file have said of it, so that no later row says otherwise.
    told: frozenset[str] = frozenset()


@dataclass
class Told:
    """What the rows so far have said, by entity: a few dozen bytes for each."""

    by_entity: dict[int, frozenset[str]] = field(default_factory=dict)
    shared: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)

    def keep(self, dossiers: Iterable[Dossier]) -> None:
        """Remember a chunk that has been written."""
        for dossier in dossiers:
            told = self.shared.setdefault(dossier.told, dossier.told)
            self.by_entity[dossier.entity.pk] = told


@dataclass(frozen=True)
class Change:
    """What one row has done to one entity."""

    row: EntityRow
    dossier: Dossier
    created: bool
    names: tuple[str, ...]  # never values: a ledger keeps no personal data


class Plan:
    """The changes that some rows ask for."""

    def __init__(self, portfolio: Portfolio, rows: Sequence[EntityRow], told: Told) -> None:
        self.portfolio = portfolio
        self.changes: list[Change] = []
        self._told = told
        self._dossiers: dict[int, Dossier] = {}
        self._by_external_id: dict[str, Dossier] = {}
        self._by_file: defaultdict[tuple[str, str], list[Dossier]] = defaultdict(list)
        self._by_identity: defaultdict[tuple[Any, ...], list[Dossier]] = defaultdict(list)
        self._touched: set[Dossier] = set()
        self._made: list[models.Model] = []
        self._changed: dict[tuple[type[models.Model], int], tuple[models.Model, set[str]]] = {}
        self._load(rows)

    def add(self, row: EntityRow) -> Change:
        """Take in one row, whole, or refuse it with a reason and leave everything as it was."""
        dossier = self._find(row)
        if dossier is None:
            dossier = self._new(row)
        else:
            self._refuse_contradictions(dossier, row)
        self._refuse_registration(dossier, row)
        created = dossier.is_new and dossier not in self._touched
        names = tuple(self._apply(dossier, row))
        change = Change(row, dossier, created, names)
        self._touched.add(dossier)
        self.changes.append(change)
        return change

    def write(self, by: User, told: Told) -> None:
        """Write everything in a few statements, with its history and its ledger entries."""
        # Entities first: the others refer to them.
        self._create(Entity, [change.dossier.entity for change in self.changes if change.created])
        models_made: tuple[type[models.Model], ...] = (
            Registration, RegistrationEvent, Officer, Address,
        )  # fmt: skip
        for model in models_made:
            self._create(model, [row for row in self._made if isinstance(row, model)])
        for model in (Entity, Registration, Address):
            self._update(model)
        for change in self.changes:
            if change.created or change.names:
                _record(change, self.portfolio, by)
        told.keep(self._touched)

    # --- What is known ---------------------------------------------------------------------------

    def _load(self, rows: Sequence[EntityRow]) -> None:
        # Two imports into one portfolio wait for each other: file numbers have no constraint.
        Portfolio.objects.select_for_update().get(pk=self.portfolio.pk)
        for entity in self._entities_named(rows):
            self._dossiers[entity.pk] = Dossier(
                entity, told=self._told.by_entity.get(entity.pk, frozenset())
            )
        keys = list(self._dossiers)
        for registration in Registration.objects.filter(entity__in=keys):
            self._dossiers[registration.entity_id].registrations.append(registration)
        if any(row.registration and row.registration.events for row in rows):
            for key, event in known_events(keys):
                self._dossiers[key].events.add(event)
        for officer in Officer.objects.filter(entity__in=keys, until__isnull=True):
            self._dossiers[officer.entity_id].officers.append(officer)
        for address in Address.objects.filter(entity__in=keys, use=Address.Use.PRINCIPAL):
            self._dossiers[address.entity_id].address = address
        for dossier in self._dossiers.values():
            self._index(dossier)

    def _entities_named(self, rows: Sequence[EntityRow]) -> list[Entity]:
        """Every entity that one of the rows could mean, locked."""
        mine = Entity.objects.filter(portfolio=self.portfolio)
        numbers = {row.registration.file_number for row in rows if row.registration}
        names = {row.identity[0] for row in rows if _is_nameless(row) and row.identity}
        keys: set[int] = set()
        for found in (
            mine.filter(external_id__in={row.external_id for row in rows if row.external_id}),
            mine.filter(registrations__file_number__in=numbers),
            mine.filter(name__in=names),
        ):
            keys.update(found.order_by().values_list("pk", flat=True))
        return list(Entity.objects.filter(pk__in=keys).select_for_update().order_by("pk"))

    def _index(self, dossier: Dossier) -> None:
        entity = dossier.entity
        if entity.external_id:
            self._by_external_id[entity.external_id] = dossier
        for registration in dossier.registrations:
            self._index_file(dossier, registration)
        identity = (entity.name, entity.kind, entity.home_jurisdiction, entity.formed_on)
        self._by_identity[identity].append(dossier)

    def _index_file(self, dossier: Dossier, registration: Registration) -> None:
        owners = self._by_file[registration.jurisdiction, registration.file_number]
        if dossier not in owners:
            owners.append(dossier)

    # --- Which entity a row means ----------------------------------------------------------------

    def _find(self, row: EntityRow) -> Dossier | None:
        cells = row.registration
        owners = self._by_file.get(cells.key, []) if cells else []
        if row.external_id:
            found = self._by_external_id.get(row.external_id)
            if cells and owners and found not in owners:
                raise NotAllowed(
                    f"file_number: {cells.file_number} in {cells.jurisdiction} belongs to "
                    f"“{owners[0].entity.name}”, which has another external_id. Correct the "
                    "number, or give that entity this external_id first."
                )
            return found
        if not cells:
            owners = self._by_identity.get(row.identity, []) if row.identity else []
        if len(owners) > 1:
            raise NotAllowed(
                f"{len(owners)} entities of this portfolio could be meant, such as "
                f"“{owners[0].entity.name}”. Give the row an external_id."
            )
        return owners[0] if owners else None

    def _new(self, row: EntityRow) -> Dossier:
        missing = [column for name, column in REQUIRED.items() if name not in row.entity]
        if missing:
            raise NotAllowed(f"A new entity needs {' and '.join(missing)}. Fill it in.")
        entity = Entity(portfolio=self.portfolio, external_id=row.external_id, **row.entity)
        return Dossier(entity, is_new=True)

    # --- What is refused -------------------------------------------------------------------------

    def _refuse_contradictions(self, dossier: Dossier, row: EntityRow) -> None:
        differing = _differing(dossier.entity, row.entity)
        if "home_jurisdiction" in differing:
            raise NotAllowed(
                f"home_jurisdiction: it is {dossier.entity.home_jurisdiction} until now. Change "
                "it by hand, because its registrations change with it."
            )
        if row.address and dossier.address and _differing(dossier.address, row.address):
            differing.append("address")
        said = [COLUMN_OF.get(name, name) for name in differing if name in dossier.told]
        if said:
            raise NotAllowed(
                f"{said[0]}: an earlier row of this file says otherwise of "
                f"“{dossier.entity.name}”. Make the rows agree."
            )

    def _refuse_registration(self, dossier: Dossier, row: EntityRow) -> None:
        cells = row.registration
        if cells is None:
            return
        formed = row.entity.get("formed_on", dossier.entity.formed_on)
        if cells.registered_on and cells.registered_on < formed:
            raise NotAllowed(
                f"registered_on: {cells.registered_on} is before the entity was formed, on "
                f"{formed}. Correct one of them."
            )
        refuse_events(cells, formed)
        known = _registration_of(dossier, cells)
        if known:
            values = _registration_values(cells)
            if _told_of(cells) in dossier.told and _differing(known, values):
                raise NotAllowed(
                    f"file_number: an earlier row of this file says otherwise of "
                    f"{cells.file_number} in {cells.jurisdiction}. Make the rows agree."
                )
            return
        for other in dossier.registrations:
            if other.jurisdiction == cells.jurisdiction and other.ended_on is None:
                raise NotAllowed(
                    f"file_number: “{dossier.entity.name}” is in {cells.jurisdiction} under "
                    f"{other.file_number}. Correct the number, or end that registration first."
                )
        if cells.registered_on is None and _is_foreign(dossier.entity, cells):
            raise NotAllowed(
                "registered_on: it is empty. Say when the entity was registered in "
                f"{cells.jurisdiction}, which is not its home."
            )

    # --- What is changed -------------------------------------------------------------------------

    def _apply(self, dossier: Dossier, row: EntityRow) -> list[str]:
        """Change the objects in memory and name what is different now."""
        names = self._set(dossier.entity, row.entity)
        told = {*dossier.told, *row.entity}
        if dossier.is_new and dossier not in self._touched:
            self._index(dossier)
        if row.registration:
            names += self._apply_registration(dossier, row.registration)
            told.add(_told_of(row.registration))
        if row.officer:
            names += self._apply_officer(dossier, *row.officer)
        if row.address:
            names += self._apply_address(dossier, row.address)
            told.add("address")
        dossier.told = frozenset(told)
        return names

    def _apply_registration(self, dossier: Dossier, cells: RegistrationCells) -> list[str]:
        known = _registration_of(dossier, cells)
        if known:
            changed = self._set(known, _registration_values(cells))
            fresh = new_events(known, cells, dossier.events)
            self._made += fresh
            changed += ["events"] if fresh else []
            return [f"registration.{cells.jurisdiction}.{name}" for name in changed]
        made = Registration(
            entity=dossier.entity,
            jurisdiction=cells.jurisdiction,
            file_number=cells.file_number,
            is_foreign=_is_foreign(dossier.entity, cells),
            registered_on=cells.registered_on or dossier.entity.formed_on,
            registered_agent=cells.registered_agent,
            traits=list(cells.traits or ()),
        )
        self._made.append(made)
        dossier.registrations.append(made)
        self._index_file(dossier, made)
        self._made += new_events(made, cells, dossier.events)
        return [f"registration.{cells.jurisdiction}"]

    def _apply_officer(self, dossier: Dossier, name: str, title: str) -> list[str]:
        if any((known.name, known.title) == (name, title) for known in dossier.officers):
            return []
        made = Officer(entity=dossier.entity, name=name, title=title)
        self._made.append(made)
        dossier.officers.append(made)
        return ["officer"]

    def _apply_address(self, dossier: Dossier, cells: dict[str, str]) -> list[str]:
        if dossier.address:
            return ["address"] if self._set(dossier.address, cells) else []
        dossier.address = Address(entity=dossier.entity, use=Address.Use.PRINCIPAL, **cells)
        self._made.append(dossier.address)
        return ["address"]

    def _set(self, target: models.Model, values: dict[str, Any]) -> list[str]:
        """Give an object new values; one that is not yet in the database needs no update."""
        differing = _differing(target, values)
        for name in differing:
            setattr(target, name, values[name])
        if differing and target.pk is not None:
            _, names = self._changed.setdefault((type(target), target.pk), (target, set()))
            names.update(differing)
        return differing

    # --- Writing ---------------------------------------------------------------------------------

    def _create(self, model: type[models.Model], rows: Sequence[models.Model]) -> None:
        made = model._default_manager.bulk_create(rows)
        remember(made, reason=REASON, created=True)

    def _update(self, model: type[models.Model]) -> None:
        changed = [pair for key, pair in self._changed.items() if key[0] is model]
        if changed:
            rows = [row for row, _ in changed]
            fields = sorted(set().union(*(names for _, names in changed)))
            model._default_manager.bulk_update(rows, fields)
            remember(rows, reason=REASON)


def _record(change: Change, portfolio: Portfolio, by: User) -> None:
    ledger.record(
        type="entity.imported",
        subject=f"entity:{change.dossier.entity.pk}",
        actor=by.username,
        portfolio_id=portfolio.pk,
        created=change.created,
        changed=list(change.names),
        line=change.row.raw.line,
        row_sha256=change.row.raw.sha256,
    )


def _is_nameless(row: EntityRow) -> bool:
    return not row.external_id and not row.registration


def _is_foreign(entity: Entity, cells: RegistrationCells) -> bool:
    """Whether it was formed elsewhere; the federal government is elsewhere to nobody in it."""
    home = entity.home_jurisdiction
    return cells.jurisdiction not in (home, home.partition("-")[0])


def _registration_of(dossier: Dossier, cells: RegistrationCells) -> Registration | None:
    for known in dossier.registrations:
        if (known.jurisdiction, known.file_number) == cells.key:
            return known
    return None


def _registration_values(cells: RegistrationCells) -> dict[str, Any]:
    given = {"registered_on": cells.registered_on, "registered_agent": cells.registered_agent}
    values: dict[str, Any] = {name: value for name, value in given.items() if value}
    return values | ({} if cells.traits is None else {"traits": list(cells.traits)})


def _told_of(cells: RegistrationCells) -> str:
    """A registration as it stands in what was told; an entity has one at a time in a place."""
    return f"registration.{cells.jurisdiction}"


def _differing(target: models.Model, values: dict[str, Any]) -> list[str]:
    return [name for name, value in values.items() if getattr(target, name) != value]
