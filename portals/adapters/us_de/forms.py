"""Delaware's forms (8 Del. C. § 502; 6 Del. C. § 18-1107)."""

from portals.forms import AnnualForm, Form


class AnnualTax(Form):
    """LLCs and partnerships pay; they file no report."""


FORMS: dict[str, type[Form]] = {"annual-report": AnnualForm, "annual-tax": AnnualTax}
