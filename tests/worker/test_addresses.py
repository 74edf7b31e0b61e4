"""Addresses outside loopback are only ever handed to the policy's check; nothing here connects."""

import asyncio
import ipaddress

import pytest

from penstock.errors import Terminal
from penstock.worker.handlers.addresses import AddressPolicy, kind, literal
from tests.worker.servers import FakeDns

METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "2002:a9fe:a9fe::",
    "2001:0:a9fe:a9fe::",
    "2001:0:808:808:0:0:5601:5601",
    "2606:4700::5efe:a9fe:a9fe",
    "2606:4700::200:5efe:a9fe:a9fe",
]
NOT_PUBLIC = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "::ffff:127.0.0.1": "loopback",
    "::127.0.0.1": "loopback",
    "64:ff9b::7f00:1": "loopback",
    "2002:7f00:1::": "loopback",
    "2001:0:7f00:1:0:0:f5ff:fffe": "loopback",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "private",
    "fd12:3456::1": "private",
    "fc00::1": "private",
    "::ffff:10.0.0.1": "private",
    "64:ff9b::a00:1": "private",
    "2002:c0a8:101::": "private",
    "169.254.1.1": "link-local",
    "fe80::1": "link-local",
    "fec0::1": "link-local",
    "64:ff9b:1::1": "local NAT64",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "0.0.0.0": "unspecified",  # noqa: S104
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "192.0.0.1": "reserved",
    "192.0.2.1": "reserved",
    "198.18.0.1": "reserved",
    "198.51.100.1": "reserved",
    "203.0.113.1": "reserved",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "2001:db8::1": "reserved",
    "100::1": "reserved",
    "4000::1": "reserved",
}
PUBLIC = [
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "64:ff9b::808:808",
    "2002:808:808::",
]


def refusal(policy: AddressPolicy, address: str, host: str = "") -> str:
    with pytest.raises(Terminal) as refused:
        policy.check(address, host)
    assert refused.value.category == "address"
    return str(refused.value)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_called(address):
    AddressPolicy().check(address)


@pytest.mark.parametrize(("address", "why"), NOT_PUBLIC.items())
def test_an_address_that_is_not_public_is_refused_with_the_reason(address, why):
    assert f"is refused: {why}. To allow it, set PENSTOCK_HTTP_ALLOW=" in refusal(
        AddressPolicy(), address
    )


@pytest.mark.parametrize(
    "address", [address for address, why in NOT_PUBLIC.items() if why in {"loopback", "private"}]
)
def test_private_opens_loopback_and_private_networks(address):
    AddressPolicy(private=True).check(address)


@pytest.mark.parametrize(
    "address",
    [address for address, why in NOT_PUBLIC.items() if why not in {"loopback", "private"}],
)
def test_private_opens_nothing_else(address):
    refusal(AddressPolicy(private=True), address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_allowed_address_may_be_called(address):
    AddressPolicy(allow=[address]).check(address)


@pytest.mark.parametrize("address", METADATA)
def test_no_setting_opens_a_metadata_address(address):
    everything = ["0.0.0.0/0", "::/0", address, "metadata.test"]
    text = refusal(AddressPolicy(private=True, allow=everything), address, "metadata.test")
    assert text.endswith("is refused: cloud metadata, which no setting opens")


def test_a_refusal_says_which_address_and_which_setting():
    assert refusal(AddressPolicy(), "10.1.2.3", "db.test") == (
        "the address 10.1.2.3 of 'db.test' is refused: private. "
        "To allow it, set PENSTOCK_HTTP_ALLOW=10.1.2.3, or a name or network that covers it"
    )
    assert refusal(AddressPolicy(), "2002:7f00:1::") == (
        "the address 2002:7f00:1:: (which means 127.0.0.1) is refused: loopback. "
        "To allow it, set PENSTOCK_HTTP_ALLOW=127.0.0.1, or a name or network that covers it"
    )
    assert refusal(AddressPolicy(), "169.254.169.254") == (
        "the address 169.254.169.254 is refused: cloud metadata, which no setting opens"
    )


def test_an_allowed_network_opens_its_addresses_in_every_form_and_no_others():
    policy = AddressPolicy(allow=["10.1.0.0/16", "fd12::/16"])
    for inside in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd12::1"):
        policy.check(inside)
    for outside in ("10.2.0.1", "127.0.0.1", "fd13::1"):
        refusal(policy, outside)


def test_an_allowed_name_opens_the_addresses_it_resolves_to_under_that_name_only():
    policy = AddressPolicy(allow=["Billing.Internal"])
    policy.check("10.1.2.3", "billing.internal.")
    refusal(policy, "10.1.2.3", "other.internal")
    refusal(policy, "10.1.2.3", "evil.billing.internal")
    refusal(policy, "10.1.2.3")


@pytest.mark.parametrize(
    ("host", "meant"),
    {
        "127.0.0.1": "127.0.0.1",
        "127.0.0.1.": "127.0.0.1",
        "2852039166": "169.254.169.254",
        "0x7f.1": "127.0.0.1",
        "0X7F000001": "127.0.0.1",
        "127.1": "127.0.0.1",
        "127.0.1": "127.0.0.1",
        "0177.0.0.01": "127.0.0.1",
        "0": "0.0.0.0",  # noqa: S104
        "0x": "0.0.0.0",  # noqa: S104
        "::ffff:7f00:1": "::ffff:127.0.0.1",
    }.items(),
)
def test_a_host_in_any_notation_is_the_address_it_means(host, meant):
    assert literal(host) == ipaddress.ip_address(meant)


@pytest.mark.parametrize("host", ["localhost", "a.b", "1e1", "x1", "0xyz", "1.2.3.4.test"])
def test_a_name_is_not_an_address(host):
    assert literal(host) is None


@pytest.mark.parametrize(
    "host",
    [
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.256",
        "08.1.1.1",
        "foo.1",
        "1..2",
        "0o17.1",
        "4294967296",
        "fe80::1%lo",
        ":",
    ],
)
def test_what_looks_like_an_address_and_is_none_is_refused(host):
    with pytest.raises(Terminal, match=f"^the host '{host}' is neither a name nor an address$"):
        literal(host)


def test_a_name_is_resolved_once_and_every_address_of_the_answer_is_checked():
    dns = FakeDns(["127.0.0.1", "::1"])
    resolved = asyncio.run(AddressPolicy(private=True, resolver=dns).resolve("two.test", 80))
    assert [address[:2] for _, address in resolved] == [("127.0.0.1", 80), ("::1", 80)]
    assert dns.questions == ["two.test"]


@pytest.mark.parametrize(
    "answer", [["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::ffff:10.0.0.1"]]
)
def test_one_forbidden_address_refuses_the_whole_answer(answer):
    with pytest.raises(Terminal, match=r"of 'mixed\.test' is refused: private"):
        asyncio.run(AddressPolicy(resolver=FakeDns(answer)).resolve("mixed.test", 80))


def test_an_address_is_checked_without_asking_dns():
    dns = FakeDns(["8.8.8.8"])
    with pytest.raises(
        Terminal, match=r"the address 127\.0\.0\.1 of '0x7f\.1' is refused: loopback"
    ):
        asyncio.run(AddressPolicy(resolver=dns).resolve("0x7f.1", 80))
    assert dns.questions == []


def test_the_widened_policy_leaves_the_first_one_as_it_was():
    policy = AddressPolicy()
    policy.widened("127.0.0.1").check("127.0.0.1")
    refusal(policy, "127.0.0.1")


@pytest.mark.fault("security", "the first and last address of every special network")
def test_every_special_network_is_judged_by_its_first_and_last_address():
    assert kind(ipaddress.ip_address("172.15.255.255")) == "public"
    assert kind(ipaddress.ip_address("172.16.0.0")) == "private"
    assert kind(ipaddress.ip_address("223.255.255.255")) == "public"
    assert kind(ipaddress.ip_address("2001:db9::")) == "public"
