"""The socket of a server, and what is said where it cannot be had."""

import socket

import pytest

from headrace.core.errors import OptionError
from headrace.server.listening import listen, url_of
from headrace.server.options import ServerOptions, is_loopback


def test_two_generations_share_a_port_and_nobody_else_gets_it() -> None:
    with listen("127.0.0.1", 0, share=True) as old:
        port = old.getsockname()[1]
        with listen("127.0.0.1", port, share=True) as new:
            assert url_of(new) == url_of(old) == f"http://127.0.0.1:{port}"
        with pytest.raises(OptionError, match=f"port {port} on 127.0.0.1 is in use: choose another with --port"):
            listen("127.0.0.1", port)


def test_a_host_that_is_none_is_said() -> None:
    with pytest.raises(OptionError, match=r"cannot listen on no-such-host\.invalid port 0"):
        listen("no-such-host.invalid", 0)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_ipv6_address_is_written_as_browsers_want_it() -> None:
    try:
        listener = listen("::1", 0)
    except OptionError:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_loopback_needs_no_users(host: str) -> None:
    assert is_loopback(host)
    assert not ServerOptions(host=host, auth=False).auth


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "", "localhost.example.org"])
def test_every_other_address_does_unless_it_is_forced(host: str) -> None:
    with pytest.raises(OptionError, match="--no-auth-for-everyone"):
        ServerOptions(host=host, auth=False)
    assert ServerOptions(host=host, auth=False, open_to_all=True).open_to_all
    assert ServerOptions(host=host).auth


@pytest.mark.parametrize("address", ["proxy.example", "10.0.0.1/8", "", "10.0.0.1:80"])
def test_a_proxy_is_named_by_an_address_that_is_one(address: str) -> None:
    assert ServerOptions(trust_proxy=("10.0.0.7", "10.0.0.0/8", "::1", "*")).trust_proxy
    with pytest.raises(OptionError, match="--trust-proxy takes the address or the network of a proxy"):
        ServerOptions(trust_proxy=(address,))
