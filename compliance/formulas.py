"""What is to be paid with a filing, where the law computes it from facts about the entity."""

from collections.abc import Callable
from decimal import Decimal

from compliance.errors import NotAllowed
from compliance.exposure import Law
from compliance.models import Deadline, Entity
from compliance.worksheets import worksheet_of

# The whole amount, with the fee that the pack names for it.
COMPUTED: dict[str, Callable[[Entity], Decimal]] = {
    "de_franchise_tax": lambda entity: worksheet_of(entity).total,
}


def payable(deadline: Deadline, law: Law | None = None) -> Decimal:
    """The amount due with a deadline's filing; refused where we cannot know it."""
    duty = (law or Law()).duty_of(deadline)
    formula = duty.formula if duty else ""
    if formula in COMPUTED:
        return COMPUTED[formula](deadline.registration.entity)
    if formula:
        raise NotAllowed(
            f"What {deadline} costs depends on facts that we do not compute ({formula}). File it "
            "by hand, and record the number."
        )
    if deadline.fee is None:
        raise NotAllowed(f"The fee of {deadline} is not known. Review the duty first.")
    return deadline.fee
