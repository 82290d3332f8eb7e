"""Finds the cards and the code behind them, by scanning folders."""

import importlib
import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from django.conf import settings

from compliance.errors import Malformed, NotFound
from portals.cards import Card, CardError, RehearsedCard, read_card
from portals.forms import AnnualForm, Form

OWN_ADAPTERS = Path(__file__).parent / "adapters"


def folders() -> list[Path]:
    """Our own folder of adapters, then the operator's."""
    extra = [Path(settings.PORTALS_DIR)] if settings.PORTALS_DIR else []
    return [OWN_ADAPTERS, *extra]


@lru_cache(maxsize=8)
def _cards(roots: tuple[Path, ...], base_url: str) -> dict[str, tuple[Card, Path]]:
    found: dict[str, tuple[Card, Path]] = {}
    for root in roots:
        for path in sorted(root.glob("*/portal.toml")):
            try:
                card = read_card(path)
            except CardError as error:
                raise Malformed(str(error)) from error
            if card.slug in found:
                raise Malformed(
                    f"{path}: the slug “{card.slug}” is taken by {found[card.slug][1]}. "
                    "Give one of them another slug."
                )
            if base_url:
                card = _rehearsed(card, base_url)
            found[card.slug] = (card, path.parent)
    return found


def _rehearsed(card: Card, base_url: str) -> Card:
    """The same portal on localhost, where nothing is worked on for minutes."""
    address = f"{base_url.rstrip('/')}/{card.slug}"
    here = {"base_url": address, "hosts": (), "processing_seconds": 0.0}
    return RehearsedCard.model_validate(card.model_dump() | here)


def cards() -> dict[str, Card]:
    """Every portal we know, by slug; in a rehearsal all answer under PORTALS_BASE_URL."""
    return {
        slug: card
        for slug, (card, _) in _cards(tuple(folders()), settings.PORTALS_BASE_URL).items()
    }


def card_of(slug: str) -> Card:
    """The card of one portal."""
    try:
        return cards()[slug]
    except KeyError:
        raise NotFound(
            f"There is no portal “{slug}”. Known are: {', '.join(sorted(cards()))}. "
            "Add a folder with a portal.toml to portals/adapters or to PORTALS_DIR."
        ) from None


def registry_of(jurisdiction: str) -> Card:
    """The portal whose register knows the entities of a jurisdiction."""
    for card in cards().values():
        if card.jurisdiction == jurisdiction and card.adapter != "funder":
            return card
    raise NotFound(
        f"No portal is known for {jurisdiction}. Add a card with jurisdiction = "
        f'"{jurisdiction}" to portals/adapters or to PORTALS_DIR.'
    )


def form_of(card: Card, form: str) -> type[Form]:
    """The fields that a form needs; portals without forms of their own share one."""
    if form not in card.forms:
        taken = ", ".join(card.forms) or "none"
        raise NotFound(f"{card.title} takes no form “{form}”. It takes: {taken}.")
    module = module_of(card, "forms")
    found: type[Form] = getattr(module, "FORMS", {}).get(form, AnnualForm)
    return found


def module_of(card: Card, name: str) -> ModuleType | None:
    """The module `name` of a card's adapter: beside the card, or in a folder of ours."""
    beside = _cards(tuple(folders()), settings.PORTALS_BASE_URL)[card.slug][1]
    folder = card.adapter.replace("-", "_")
    if beside.name == folder and beside.parent != OWN_ADAPTERS:
        return _load_file(beside / f"{name}.py", f"portals_dir.{folder}.{name}")
    try:
        return importlib.import_module(f"portals.adapters.{folder}.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (f"portals.adapters.{folder}.{name}", f"portals.adapters.{folder}"):
            raise
        return None


def _load_file(path: Path, name: str) -> ModuleType | None:
    if not path.exists():
        return None
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Malformed(f"{path}: cannot be loaded as Python. Correct or remove it.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
