"""Where a request may go: the hosts on the card, at addresses of the public internet, by TLS.

A name is looked up once, every address it has is judged, and the connection is made to the very
address that was judged; so a name server that changes its mind in between gains nothing. In a
rehearsal every portal answers on one address of our own, and only the hosts are held to.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore
import httpx

from portals.cards import Card

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

# NAT64 carries an IPv4 address in its last four bytes: that one is judged.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# All of today's public IPv6 is here; whatever lies elsewhere is for inside or for translation.
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
NOT_PUBLIC = [
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
]  # fmt: skip


class Forbidden(httpx.ConnectError):
    """A place where our requests must not go; nothing was sent."""


def why_not(address: str) -> str:
    """Why we do not connect to an address; empty if it is one of the public internet."""
    try:
        found: Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"{address} is not an address"
    if isinstance(found, ipaddress.IPv6Address) and found in NAT64:
        found = ipaddress.IPv4Address(found.packed[-4:])
    outside = isinstance(found, ipaddress.IPv6Address) and found not in PUBLIC_IPV6
    if outside or not found.is_global or any(found in block for block in NOT_PUBLIC):
        return f"{address} is not an address of the public internet"
    return ""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system knows them."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} cannot be looked up: {error}") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that it has judged."""

    def __init__(self, look_up: Resolve, inner: httpcore.AsyncNetworkBackend) -> None:
        self.look_up = look_up
        self.inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Look the name up once, judge every address, and connect to one of those."""
        addresses = await self.look_up(host, port)
        for address in addresses:
            if refusal := why_not(address):
                # One bad address among good ones is no accident either.
                raise httpcore.ConnectError(f"{host} was refused: {refusal}")
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self.inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """No portal lives in a file."""
        raise httpcore.ConnectError("A portal is never reached through a file.")

    async def sleep(self, seconds: float) -> None:
        """Wait, as the inner backend does."""
        await self.inner.sleep(seconds)


class CheckedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport on a pool that connects only where it may."""

    def __init__(self, card: Card, look_up: Resolve, inner: httpcore.AsyncNetworkBackend) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=card.max_concurrency,
            keepalive_expiry=5.0,
            retries=0,
            network_backend=CheckedBackend(look_up, inner),
        )


def transport_for(
    card: Card,
    *,
    look_up: Resolve = resolve,
    inner: httpcore.AsyncNetworkBackend | None = None,
) -> httpx.AsyncHTTPTransport:
    """The way out to one portal.

    An operator's fixed proxy may stand inside; it looks names up itself, so there the list of
    hosts is what we can hold to.
    """
    limits = httpx.Limits(max_connections=card.max_concurrency)
    if card.egress_proxy:
        proxy = httpx.Proxy(card.egress_proxy)
        return httpx.AsyncHTTPTransport(retries=0, proxy=proxy, limits=limits)
    if card.is_rehearsed:
        return httpx.AsyncHTTPTransport(retries=0, limits=limits)
    return CheckedTransport(card, look_up, inner or httpcore.AnyIOBackend())


def refuse_elsewhere(url: httpx.URL, card: Card) -> None:
    """Raise for an address that the card does not name; nothing has been sent."""
    base = httpx.URL(card.base_url)
    places = {(base.scheme, base.raw_host, base.port)}
    places |= {("https", host.encode(), None) for host in card.hosts}
    host = url.raw_host.decode("ascii")  # as it goes on the wire; the readable form may not exist
    if (url.scheme, url.raw_host, url.port) not in places or url.userinfo:
        raise Forbidden(
            f"{url.scheme}://{host} is not a place that the card of {card.slug} names. If the "
            "portal moved, correct base_url or hosts on the card."
        )
    if card.is_rehearsed:
        return
    if url.scheme != "https":
        raise Forbidden(f"{card.slug}: {host} would be reached without TLS. Use https.")
    if _is_literal(host) and (refusal := why_not(host)):
        raise Forbidden(f"{card.slug}: {refusal}. Correct the card.")


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
