"""What the forms of portals are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Line = Annotated[str, Field(min_length=1, max_length=400)]


class Form(BaseModel):
    """The fields of one form. A field that the portal does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class Person(Form):
    """An officer, director, member or manager."""

    name: Line
    title: Line
    address: str = Field(default="", max_length=400)


class AnnualForm(Form):
    """What nearly every state asks once a year: where, and who."""

    principal_address: Line
    registered_agent: str = Field(default="", max_length=300)
    officers: list[Person] = Field(min_length=1)
