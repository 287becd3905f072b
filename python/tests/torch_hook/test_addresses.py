# SPDX-License-Identifier: MIT
"""At which address workers reach each other."""
import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed")

import laconic  # noqa: E402
from laconic.torch import _transport  # noqa: E402


def test_the_route_to_a_local_master_is_loopback(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    assert _transport._is_loopback(_transport._address("tcp"))
    monkeypatch.delenv("MASTER_ADDR")
    assert _transport._address("tcp:encryption=no") == "127.0.0.1"


def test_the_address_to_listen_on_is_the_one_to_dial():
    assert _transport._address("tcp:listen=127.0.0.2") == "127.0.0.2"
    assert _transport._address(
        "tcp:encryption=no,listen=[::1]") == "::1"
    offer = _transport._Offer("::1", 80, "key", "host")
    assert _transport._dial(offer) == "[::1]:80"
    assert _transport._dial(offer._replace(address="10.0.0.1")) == (
        "10.0.0.1:80")


@pytest.mark.parametrize("spec", [
    "tcp:listen=0.0.0.0", "tcp:listen=0.0.0.0:0", "tcp:listen=[::]",
    "tcp:encryption=no,listen=[::]:0"])
def test_an_address_for_all_interfaces_is_none_to_dial(monkeypatch, spec):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    assert _transport._address(spec) == "127.0.0.1"


@pytest.fixture
def as_rank(monkeypatch):
    """Runs _reachable as a rank; the others share what they have."""
    def run(rank, *workers):
        offers = [_transport._Offer(address, 1, "key", host)
                  for address, host in workers]
        monkeypatch.setattr(
            _transport.dist, "get_rank", lambda group: rank)
        monkeypatch.setattr(
            _transport, "_agree", lambda group, own: [
                own if i == rank else (offer.address, _transport._FINE)
                for i, offer in enumerate(offers)])
        monkeypatch.setattr(
            _transport, "_towards", lambda host: f"route to {host}")
        return [o.address for o in _transport._reachable(None, offers)]

    return run


def test_workers_on_one_machine_use_loopback(as_rank):
    assert as_rank(0, ("127.0.0.1", "a"), ("127.0.0.1", "a")) == [
        "127.0.0.1", "127.0.0.1"]


def test_a_machine_whose_name_is_loopback_uses_the_route_to_the_others(
        as_rank):
    """Debian writes 127.0.1.1 for a machine's own name."""
    found = as_rank(0, ("127.0.0.1", "a"), ("10.0.0.2", "b"))
    assert found == ["route to 10.0.0.2", "10.0.0.2"]
    found = as_rank(1, ("127.0.0.1", "a"), ("10.0.0.2", "b"))
    assert found[1] == "10.0.0.2"


def test_addresses_of_several_machines_stay(as_rank):
    assert as_rank(1, ("10.0.0.1", "a"), ("10.0.0.2", "b")) == [
        "10.0.0.1", "10.0.0.2"]


def test_a_machine_without_a_route_fails_on_all(as_rank, monkeypatch):
    def fail(host):
        raise OSError(f"no route to {host}")

    workers = ("127.0.0.1", "a"), ("10.0.0.2", "b")
    shared = []
    as_rank(0, *workers)
    agree = _transport._agree
    monkeypatch.setattr(_transport, "_towards", fail)
    monkeypatch.setattr(
        _transport, "_agree", lambda group, own: shared.append(own) or agree(
            group, own))
    with pytest.raises(laconic.PeerError,
                       match="worker 0: no route to 10.0.0.2"):
        _transport._reachable(None, [
            _transport._Offer(address, 1, "key", host)
            for address, host in workers])
    assert len(shared) == 1
