"""California's Statement of Information (Corp. Code §§ 1502, 2117, 17702.09, 6210, 8210, 9660)."""

from pydantic import Field

from portals.forms import AnnualForm, Form, Line


class StatementOfInformation(AnnualForm):
    """Where, who, and who may be served."""

    mailing_address: str = Field(default="", max_length=400)
    registered_agent: Line


FORMS: dict[str, type[Form]] = {"statement-of-information": StatementOfInformation}
