"""Pages with an end."""

from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request


class CappedPagination(LimitOffsetPagination):
    """A huge limit or offset is cut, not passed to the database."""

    default_limit = 50
    max_limit = 500
    max_offset = 1_000_000

    def get_offset(self, request: Request) -> int:
        """No offset that a database integer cannot hold."""
        return min(super().get_offset(request), self.max_offset)
