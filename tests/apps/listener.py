"""Joins multicast groups on an interface, as a program of a host does, and prints datagrams.

    listener.py INTERFACE GROUP...

It prints "joined" when it has joined all groups, and a line for each datagram to port 7777: the
group and the payload. SIGTERM ends it, and the host leaves its groups.
"""

import select
import socket
import struct
import sys

PORT = 7777


def joined(interface, group):
    """Returns a socket that receives the datagrams of one group only."""
    index = socket.if_nametoindex(interface)
    if ":" in group:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((group, PORT, 0, index))
        request = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", index)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
    else:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((group, PORT))
        request = socket.inet_aton(group) + struct.pack("@4si", bytes(4), index)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    return sock


def main():
    interface, groups = sys.argv[1], sys.argv[2:]
    sockets = {joined(interface, group): group for group in groups}
    print("joined", flush=True)
    while True:
        for sock in select.select(list(sockets), [], [])[0]:
            payload = sock.recv(2000).decode()
            print(sockets[sock], payload, flush=True)


main()
