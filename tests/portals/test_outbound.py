"""Where requests may go, tried with the ways in which people have got out before."""

import asyncio
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest
from django.core.checks import run_checks
from pydantic import ValidationError
from pytest_django import Settings

from portals.cards import Card, Limit, RehearsedCard
from portals.errors import InDoubt, PortalError, Unavailable
from portals.http import ANSWER_LIMIT, Attempting, Wire, attempting
from portals.limiter import Limiter
from portals.outbound import resolve, transport_for, why_not
from tests.portals.test_cards import CARD, write_card

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"]
EVERYWHERE = "0.0.0.0"  # noqa: S104 - an address to refuse; nothing binds to it
NOT_PUBLIC = [
    EVERYWHERE, "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "127.0.0.1",
    "127.255.255.254", "169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
    "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::808:808", "100::1", "2001::1",
    "2001:0:7f00:1::", "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
    "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1",
    "ff02::1", "ff0e::1", "not an address", "", "127.1", "0x7f000001",
]  # fmt: skip
# All of these are this machine, for one library or another.
DISGUISED = [
    "127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1",
    "0x7f.1", "0177.0.0.1", "017700000001", "0177.0.0.0x1", "00127.0.0.1", EVERYWHERE, "0",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "LOCALHOST", "localhost.",
    "127.0.0.1.nip.io", "rebind.example", "①②⑦.0.0.1", "127。0。0。1", "loⓒalhost",
]  # fmt: skip
# What an adapter could be made to ask for while the card names portal.example.
ELSEWHERE = [
    "https://127.0.0.1:{port}/", "http://127.0.0.1:{port}/", "https://localhost:{port}/",
    "https://portal.example@127.0.0.1:{port}/", "https://portal.example:443@127.0.0.1:{port}/",
    "https://user:secret@portal.example/", "https://portal.example:{port}/",
    "http://portal.example/", "https://portal.example.evil.example/",
    "https://evil.example/portal.example", "https://evil.example?portal.example",
    "https://evil.example#portal.example", "https://169.254.169.254/latest/meta-data/",
    "https://[::1]:{port}/", "https://[::ffff:127.0.0.1]:{port}/", "https://2130706433:{port}/",
    "https://sub.portal.example/", "https://portal.examp1e/", "https://xn--prtal-jua.example/",
    "ftp://portal.example/", "https://files.portal.example:{port}/",
    "http://files.portal.example/", "https://portal.example.:443/",
]  # fmt: skip


@dataclass
class Canary:
    """A listener on this machine that nobody may reach, and that answers if somebody does."""

    answer: Callable[[socket.socket], None]
    connections: int = 0
    server: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.getsockname()[1])

    def serve(self) -> None:
        """Count, answer, close; until the socket is closed."""
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(5)
                connection.recv(65536)
                self.answer(connection)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass  # to close on unread bytes would reset what was just answered
            except OSError:
                pass  # the client has hung up, which is what some tests want


@pytest.fixture
def listen() -> Iterator[Callable[[Callable[[socket.socket], None]], Canary]]:
    """Start listeners; all end with the test."""
    started: list[Canary] = []

    def start(answer: Callable[[socket.socket], None]) -> Canary:
        canary = Canary(answer)
        threading.Thread(target=canary.serve, daemon=True).start()
        started.append(canary)
        return canary

    yield start
    for canary in started:
        canary.server.shutdown(socket.SHUT_RDWR)
        canary.server.close()


Listen = Callable[[Callable[[socket.socket], None]], Canary]


def says(head: str, body: bytes = b"") -> Callable[[socket.socket], None]:
    """An answer with that head and body."""

    def answer(connection: socket.socket) -> None:
        length = f"Content-Length: {len(body)}\r\n"
        connection.sendall(f"HTTP/1.1 {head}\r\n{length}\r\n".encode() + body)

    return answer


def card_at(base_url: str, *, rehearsed: bool = False, **values: Any) -> Card:
    """A card of a portal at that address."""
    made = RehearsedCard if rehearsed else Card
    told: dict[str, Any] = {
        "slug": "zz", "title": "ZZ", "jurisdiction": "ZZ", "adapter": "reference",
        "base_url": base_url, "timezone": "UTC", "verified_on": date(2026, 11, 1),
        "limits": (Limit(requests=100, seconds=1),), "timeout_seconds": 2.0,
    }  # fmt: skip
    return made(**{**told, **values})


def ask(
    card: Card, path: str = "/x", *, way_out: httpx.AsyncBaseTransport | None = None,
    commits: bool = False,
) -> httpx.Response | PortalError:  # fmt: skip
    """Send one request over a line of its own; an error is its value."""

    async def inside() -> httpx.Response:
        limiter = Limiter(card.limits, card.max_concurrency, quiet_for=99)
        async with Wire(card, limiter, version="test", way_out=way_out) as wire:
            attempting.set(Attempting(1, may_ask=lambda: True, may_commit=lambda: True))
            send = wire.commit if commits else wire.ask
            return await send("POST", path, content=b"what nobody else may get")

    try:
        return asyncio.run(inside())
    except PortalError as error:
        return error


async def as_libc(host: str, port: int) -> list[str]:
    """Look names up as C libraries do: short, octal, decimal and hexadecimal numbers too."""
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        return ["127.0.0.1"] if ":" not in host else [host]


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_public_internet_is_taken(address: str) -> None:
    assert why_not(address) == ""


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_any_other_address_is_refused(address: str) -> None:
    assert why_not(address)


def test_no_disguise_of_this_machine_gets_a_connection(listen: Listen) -> None:
    canary = listen(says("200 OK"))
    endings = []
    for host in DISGUISED:
        card = card_at(f"https://{host}:{canary.port}/")
        try:
            endings.append(ask(card, way_out=transport_for(card, look_up=as_libc)))
        except httpx.InvalidURL:
            continue  # such a host cannot even be written

    assert len(endings) >= 25
    assert all(isinstance(ending, Unavailable) for ending in endings)
    assert canary.connections == 0


def test_the_canary_would_have_told(listen: Listen) -> None:
    canary = listen(says("200 OK"))

    answer = ask(card_at(f"http://127.0.0.1:{canary.port}", rehearsed=True))

    assert isinstance(answer, httpx.Response)
    assert canary.connections == 1


@pytest.mark.parametrize("rehearsed", [True, False])
def test_no_address_that_the_card_does_not_name_is_asked(
    listen: Listen, *, rehearsed: bool
) -> None:
    canary = listen(says("200 OK"))
    hosts = () if rehearsed else ("files.portal.example",)
    card = card_at("https://portal.example", rehearsed=rehearsed, hosts=hosts)

    endings = [ask(card, url.format(port=canary.port)) for url in ELSEWHERE]

    assert all(isinstance(ending, Unavailable) for ending in endings)
    assert all("names" in str(ending) or "Request URL" in str(ending) for ending in endings)
    assert canary.connections == 0


class Recorded(httpcore.AsyncNetworkBackend):
    """A network on which nothing answers, and which remembers where it was to connect."""

    def __init__(self) -> None:
        self.connected: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Remember, and fail."""
        self.connected.append(host)
        raise httpcore.ConnectError("nothing answers here")


def test_a_name_that_changes_its_address_gains_nothing() -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]])
    network = Recorded()

    async def rebinding(host: str, port: int) -> list[str]:
        return next(answers)

    card = card_at("https://rebind.example")
    first = ask(card, way_out=transport_for(card, look_up=rebinding, inner=network))
    second = ask(card, way_out=transport_for(card, look_up=rebinding, inner=network))

    assert network.connected == ["93.184.216.34"]  # as judged, and never the name again
    assert isinstance(first, Unavailable)
    assert "127.0.0.1 is not an address of the public internet" in str(second)


def test_one_private_address_among_public_ones_refuses_them_all() -> None:
    network = Recorded()

    async def mixed(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.7"]

    card = card_at("https://mixed.example")
    ending = ask(card, way_out=transport_for(card, look_up=mixed, inner=network), commits=True)

    assert network.connected == []
    assert isinstance(ending, Unavailable)  # not a doubt: nothing has left


def test_a_host_that_the_card_lists_may_be_asked() -> None:
    network = Recorded()

    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "2606:4700::1111"]

    card = card_at("https://portal.example", hosts=("files.portal.example",))
    way_out = transport_for(card, look_up=public, inner=network)
    ask(card, "https://files.portal.example/receipt", way_out=way_out)

    assert network.connected == ["93.184.216.34", "2606:4700::1111"]


def test_the_systems_own_look_up_is_judged_too(listen: Listen) -> None:
    canary = listen(says("200 OK"))

    ending = ask(card_at(f"https://localhost:{canary.port}"))

    assert asyncio.run(resolve("localhost", 1))
    assert "localhost was refused" in str(ending)
    assert canary.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["127.0.0.1:{port}", "169.254.169.254", "evil.example"])
@pytest.mark.parametrize("commits", [True, False])
def test_no_redirect_is_followed(
    status: int, target: str, listen: Listen, *, commits: bool
) -> None:
    canary = listen(says("200 OK"))
    to = target.format(port=canary.port)
    portal = listen(says(f"{status} Moved\r\nLocation: http://{to}/"))

    answer = ask(card_at(f"http://127.0.0.1:{portal.port}", rehearsed=True), commits=commits)

    assert isinstance(answer, httpx.Response)  # the recogniser knows no answer with that status
    assert answer.status_code == status
    assert (portal.connections, canary.connections) == (1, 0)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path, listen: Listen) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))

    def answer(connection: socket.socket) -> None:
        raise AssertionError("unreachable")

    canary = Canary(answer)

    def serve() -> None:
        connection, _ = canary.server.accept()
        try:
            context.wrap_socket(connection, server_side=True)
        except (ssl.SSLError, OSError):
            connection.close()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    card = card_at(f"https://127.0.0.1:{canary.port}", rehearsed=True)
    ending = ask(card, commits=True)
    server.join(timeout=5)
    canary.server.close()

    assert isinstance(ending, Unavailable)
    assert "certificate" in str(ending).lower()


def self_signed(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that it has signed itself, with its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(place, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def test_an_answer_that_drips_is_given_up_in_time(listen: Listen) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"x")
            time.sleep(0.1)

    portal = listen(drip)
    card = card_at(f"http://127.0.0.1:{portal.port}", rehearsed=True, timeout_seconds=1.0)
    start = time.monotonic()

    ending = ask(card, commits=True)

    assert isinstance(ending, InDoubt)
    assert time.monotonic() - start < 3


def test_a_small_packed_answer_that_grows_without_end_is_given_up(listen: Listen) -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024), compresslevel=9)
    assert 200 * 1024 * 1024 / len(bomb) > 900
    portal = listen(says("200 OK\r\nContent-Encoding: gzip", bomb))

    ending = ask(card_at(f"http://127.0.0.1:{portal.port}", rehearsed=True, timeout_seconds=10.0))

    assert "larger than we read" in str(ending)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("200 OK", bytes(ANSWER_LIMIT + 1)),
        ("200 OK\r\nContent-Encoding: gzip, gzip", gzip.compress(gzip.compress(bytes(1000)))),
        ("200 OK\r\nContent-Encoding: br", b"\x0b\x02\x80abc\x03"),
        ("200 OK\r\nContent-Encoding: gzip", gzip.compress(b"cut short")[:-4]),
        ("200 OK\r\nContent-Encoding: gzip", b"not packed at all"),
    ],
    ids=["large", "packed twice", "unknown packing", "cut", "no gzip"],
)
def test_an_answer_that_we_cannot_hold_or_unpack_is_none(
    head: str, body: bytes, listen: Listen
) -> None:
    portal = listen(says(head, body))

    ending = ask(card_at(f"http://127.0.0.1:{portal.port}", rehearsed=True), commits=True)

    assert isinstance(ending, InDoubt)


def test_a_packed_answer_is_unpacked(listen: Listen) -> None:
    portal = listen(says("200 OK\r\nContent-Encoding: gzip", gzip.compress(b"accepted")))

    answer = ask(card_at(f"http://127.0.0.1:{portal.port}", rehearsed=True))

    assert isinstance(answer, httpx.Response)
    assert answer.content == b"accepted"


def test_a_fixed_proxy_may_stand_inside_and_gets_the_host_of_the_card(listen: Listen) -> None:
    asked: list[bytes] = []

    def proxy(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n")

    canary = listen(proxy)
    received = canary._answer

    def remember(connection: socket.socket) -> None:
        asked.append(connection.recv(65536, socket.MSG_PEEK))
        received(connection)

    canary._answer = remember  # type: ignore[method-assign]
    card = card_at("https://portal.example", egress_proxy=f"http://127.0.0.1:{canary.port}")

    ask(card, "https://169.254.169.254/")
    ending = ask(card)

    assert [line.split(b"\r\n")[0] for line in asked] == [b"CONNECT portal.example:443 HTTP/1.1"]
    assert isinstance(ending, Unavailable)


@pytest.mark.parametrize(
    "values",
    [
        {"base_url": "https://user:secret@portal.example/"},
        {"base_url": "https://portal.example\\@evil.example/"},
        {"base_url": "https:///api"},
        {"base_url": "https://portal.example/?next=x"},
        {"hosts": ("127.0.0.1",)},
        {"hosts": ("*.portal.example",)},
        {"hosts": ("portal.example:8443",)},
        {"hosts": ("https://portal.example",)},
        {"hosts": ("localhost",)},
    ],
)
def test_a_card_that_leads_in_two_ways_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        card_at(**{"base_url": "https://portal.example", **values})


@pytest.mark.parametrize(("rehearsal", "told"), [("", ["portals.E005"]), ("http://zz", [])])
def test_a_portal_without_tls_stops_the_start_outside_a_rehearsal(
    rehearsal: str, told: list[str], tmp_path: Path, settings: Settings
) -> None:
    write_card(tmp_path / "one", CARD.replace("https://", "http://"))
    settings.PORTALS_DIR, settings.PORTALS_BASE_URL = str(tmp_path), rehearsal

    found = [str(message.id) for message in run_checks() if message.id == "portals.E005"]

    assert found == told


def test_there_are_enough_ways_out_tried() -> None:
    assert len({*NOT_PUBLIC, *DISGUISED, *ELSEWHERE}) >= 100
