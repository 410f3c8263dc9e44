#!/usr/bin/env python3
"""Writes vectors.txt: frames made by scapy 2.8, to test the parser against code that is not ours.

    pip install scapy==2.8.0 && python3 vectors.py > vectors.txt
"""
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPP_LCP_Echo, PPPoE

MACS = dict(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
V4 = dict(src="192.0.2.1", dst="198.51.100.2")
V6 = dict(src="2001:db8::1", dst="2001:db8:1::2")
DATA = bytes(i % 251 for i in range(37))


def eth(**more):
    return Ether(**MACS, **more)


def ack(**more):
    fields = dict(sport=443, dport=50000, seq=0x01020304, ack=0xFFFFFFF0, flags="A", window=501)
    return TCP(**{**fields, **more})


TS = [("NOP", None), ("NOP", None), ("Timestamp", (0xDEADBEEF, 0x01020304))]

FRAMES = {
    "v4_ack": eth() / IP(**V4, ttl=57, id=0, flags="DF") / ack(),
    "v4_ack_ts": eth() / IP(**V4, ttl=57, id=0, flags="DF", tos=0x28) / ack(options=TS),
    "v4_data_sack": eth() / IP(**V4, tos=1)
    / ack(flags="PA", options=TS + [("NOP", None), ("NOP", None), ("SAck", (10, 20, 30, 40))]) / DATA,
    "v4_syn": eth() / IP(**V4)
    / ack(flags="SEC", ack=0, options=[("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None),
                                       ("WScale", 15)]),
    "v4_syn_fast_open": eth() / IP(**V4) / ack(flags="S", ack=0, options=[("MSS", 1460), ("TFO", (0x01020304, 0x05060708))]),
    "v4_md5": eth() / IP(**V4) / ack(options=[(19, b"\x11" * 16), ("NOP", None), ("NOP", None)]),
    "v4_ao": eth() / IP(**V4) / ack(options=[(29, b"\x01\x02" + b"\x33" * 12)]),
    "v4_mptcp": eth() / IP(**V4) / ack(options=[(30, b"\x20\x01\x00\x00\x00\x09")]),
    "v4_unknown_option": eth() / IP(**V4) / ack(options=TS + [(172, b"\x00" * 9)]),
    "v4_ip_options": eth() / IP(**V4, options=[b"\x94\x04\x00\x00"]) / ack() / DATA,
    "v4_padded": eth() / IP(**V4) / ack() / b"",
    "v4_first_fragment": eth() / IP(**V4, flags="MF") / ack() / DATA,
    "v4_last_fragment": eth() / IP(**V4, frag=3) / DATA,
    "v4_udp": eth() / IP(**V4) / UDP(sport=53, dport=4000) / DATA,
    "v4_udp_no_checksum": eth() / IP(**V4) / UDP(sport=53, dport=4000, chksum=0) / DATA,
    "v4_icmp": eth() / IP(**V4) / ICMP() / DATA,
    "vlan_v4_ack_ts": eth() / Dot1Q(vlan=100, prio=3) / IP(**V4, ttl=57, id=0, flags="DF") / ack(options=TS),
    "qinq_v6_ack_ts": eth() / Dot1AD(vlan=7) / Dot1Q(vlan=4094, prio=7)
    / IPv6(**V6, hlim=61, tc=0xB8, fl=0xABCDE) / ack(options=TS),
    "three_tags": eth() / Dot1AD(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / IP(**V4) / ack(),
    "v6_ack": eth() / IPv6(**V6, hlim=61) / ack(),
    "v6_ack_ts_sack": eth() / IPv6(**V6, hlim=61)
    / ack(options=TS + [("NOP", None), ("NOP", None), ("SAck", (0xFFFFFF00, 0x00000010))]),
    "qinq_v6_ack_ts_sack": eth() / Dot1AD(vlan=7) / Dot1Q(vlan=4094, prio=7)
    / IPv6(**V6, hlim=61, tc=0xB8, fl=0xABCDE)
    / ack(options=TS + [("NOP", None), ("NOP", None), ("SAck", (1, 2))]),
    "v4_ack_sack": eth() / IP(**V4, ttl=57, id=0, flags="DF")
    / ack(options=[("NOP", None), ("NOP", None), ("SAck", (0xFFFFFF00, 0x00000010))]),
    "v6_data": eth() / IPv6(**V6, tc=2, fl=0x12345) / ack(flags="FA", urgptr=9) / DATA,
    "v6_extensions": eth() / IPv6(**V6) / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt()
    / IPv6ExtHdrRouting(addresses=["2001:db8::9"], segleft=0) / ack(options=TS) / DATA,
    "v6_source_routed": eth() / IPv6(**V6) / IPv6ExtHdrRouting(addresses=["2001:db8::9"]) / ack(),
    "v6_fragment": eth() / IPv6(**V6) / IPv6ExtHdrFragment(m=1) / ack() / DATA,
    "pppoe_v4_ack_ts": eth() / PPPoE(sessionid=0x1234) / PPP() / IP(**V4, ttl=57, id=0, flags="DF") / ack(options=TS),
    "pppoe_v6_data": eth() / PPPoE(sessionid=0xFFFE) / PPP() / IPv6(**V6, tc=2, fl=0x12345) / ack(flags="FA", urgptr=9)
    / DATA,
    "qinq_pppoe_v6_ack_ts": eth() / Dot1AD(vlan=7) / Dot1Q(vlan=4094, prio=7) / PPPoE(sessionid=0xF00F) / PPP()
    / IPv6(**V6, hlim=61, tc=0xB8, fl=0xABCDE) / ack(options=TS),
    "pppoe_v4_udp": eth() / Dot1Q(vlan=100) / PPPoE(sessionid=1) / PPP() / IP(**V4) / UDP(sport=53, dport=4000) / DATA,
    "pppoe_lcp": eth() / PPPoE(sessionid=1) / PPP() / PPP_LCP_Echo(code=9, magic_number=1),
    "v6_udp": eth() / IPv6(**V6) / UDP(sport=53, dport=4000) / DATA,
    "arp": Ether(src=MACS["src"], dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=MACS["src"], psrc="192.0.2.1", pdst="192.0.2.2"),
}

for name, frame in FRAMES.items():
    frame = bytes(frame)
    if name == "v4_padded":
        frame = frame.ljust(60, b"\x55")
    print(name, frame.hex())
