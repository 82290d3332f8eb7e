"""Errors that people see: what is wrong, where, and what to do."""


class DomainError(Exception):
    """Something a person asked for cannot be done; the message says why and what to do."""

    code = "refused"

    def __init__(self, message: str, *, code: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.problems = problems


class NotFound(DomainError):
    """A name that we do not know: a jurisdiction, a portal, a user."""

    code = "not_found"


class NotAllowed(DomainError):
    """The move exists, but not from here or not for this person."""

    code = "not_allowed"


class Malformed(DomainError):
    """A file or a value that cannot be read as what it should be."""

    code = "malformed"
