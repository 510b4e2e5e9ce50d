"""How a server is to run; the defaults are safe on any network."""

from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from headrace.core.errors import OptionError

_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    host: str = "127.0.0.1"
    port: int = 8000
    auth: bool = True
    # Serve without auth on an address that others reach. Whoever sets it has said so with a flag of its own.
    open_to_all: bool = False
    body_limit: int = 1_048_576  # bytes
    requests_per_minute: int = 1200  # of one token, or of one address without one; 0: no limit
    watchers_per_caller: int = 5000  # WebSockets and event streams at once, of one token or address; 0: no limit
    cors_origins: tuple[str, ...] = ()
    redis_url: str | None = None  # live hints go over Redis in place of the database
    session_ttl: float = 12 * 3600.0
    lockout_after: int = 5
    lockout: float = 900.0
    secure_cookies: bool = False  # set behind TLS
    # Addresses or networks of proxies. Whoever else sends X-Forwarded-For is who it comes from, and nobody else.
    trust_proxy: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.auth and not self.open_to_all and not is_loopback(self.host):
            raise OptionError(
                f"a server without users listens on loopback only, and {self.host} is reached by others: leave auth "
                "on, or say --no-auth-for-everyone"
            )
        for address in self.trust_proxy:
            _check_proxy(address)


def is_loopback(host: str) -> bool:
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_proxy(address: str) -> None:
    """One that is misspelt would be trusted by nobody, and everybody behind it be counted as one."""
    if address == "*":
        return
    try:
        ip_network(address)
    except ValueError:
        raise OptionError(
            f"--trust-proxy takes the address or the network of a proxy, as 10.0.0.7 or 10.0.0.0/8, not {address!r}"
        ) from None
