"""What is to be paid with a filing, where the law computes it from facts about the entity."""

from collections.abc import Callable
from decimal import Decimal

from compliance.errors import NotAllowed
from compliance.exposure import Law
from compliance.franchise_tax import Shares
from compliance.models import Deadline, Entity
from compliance.state_amounts import nevada_renewal, nevada_stock_value
from compliance.wording import money
from compliance.worksheets import worksheet_of


def nevada_list_fee(entity: Entity) -> Decimal:
    """The fee of a corporation's annual list, by its stock on file; refused where unsure."""
    classes = [Shares(row.authorized, row.par_value) for row in entity.share_classes.all()]
    if not classes:
        raise NotAllowed(f"Nevada's list fee goes by authorized stock. Enter that of {entity}.")
    value = nevada_stock_value(classes)
    fee = nevada_renewal("corporation", stock_value=value)[0]
    if fee.confidence != "high":
        raise NotAllowed(
            f"Stock worth {money(value)} would cost {money(fee.amount)} by {fee.cite}, but that "
            "step of the law needs review. File it by hand, and record the number."
        )
    return fee.amount


# The whole amount, with the fee that the pack names for it.
COMPUTED: dict[str, Callable[[Entity], Decimal]] = {
    "de_franchise_tax": lambda entity: worksheet_of(entity).total,
    "nv_annual_list_fee": nevada_list_fee,
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
