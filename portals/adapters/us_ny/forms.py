"""New York's biennial statement (BCL § 408; LLC Law § 301(e))."""

from pydantic import Field

from portals.forms import Form, Line


class BiennialStatement(Form):
    """Chief executive (corporations), principal office and address for process."""

    chief_executive: str = Field(default="", max_length=400)
    principal_address: Line
    process_address: Line
    note: str = ""


FORMS: dict[str, type[Form]] = {"biennial-statement": BiennialStatement}
