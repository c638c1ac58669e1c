#!/usr/bin/env python3
"""Runs ranks on two hosts, which are network namespaces of this machine. Needs root.

    tests/distributed/two_hosts.py build/release/tests/gradflow_distributed_rank [ROUNDS]

Ranks 0 and 1 run on one host, ranks 2 and 3 on the other. A process between the hosts passes their
packets on. It also delays packets, stalls them, and cuts connections. The ranks make random calls,
and then sum tensors until the connection is disturbed, when every rank must report an error in
time. Prints a line for each case. Exits with 1 if a case fails.
"""

import heapq
import os
import re
import select
import socket
import subprocess
import sys
import time

ADDRESSES = ["10.77.0.1", "10.77.0.2"]
PORT = 29500
RANKS = 4
# A rank may report an error this many seconds after its timeout.
ALLOWED = 1.0


# ---- The process between the hosts ----

SOL_PACKET = 263
PACKET_VNET_HDR = 15
ETH_P_ALL = 3
PACKET_OUTGOING = 4
VNET_HDR = 10


def reset(packet):
    """Sets the RST flag of a TCP packet over IPv4. Returns None for packets to drop."""
    frame = VNET_HDR
    if packet[frame + 12 : frame + 14] != b"\x08\x00" or packet[frame + 23] != 6:
        return packet
    if packet[1] != 0:  # Several segments in one.
        return None
    tcp = frame + 14 + 4 * (packet[frame + 14] & 15)
    changed = bytearray(packet)
    if not changed[tcp + 13] & 4:
        changed[tcp + 13] |= 4
        if not packet[0] & 1:  # The checksum is complete.
            old = int.from_bytes(packet[tcp + 16 : tcp + 18], "big")
            total = (~old & 0xFFFF) + 4
            changed[tcp + 16 : tcp + 18] = (~(total % 0xFFFF) & 0xFFFF).to_bytes(2, "big")
    return bytes(changed)


def wire(devices):
    """Passes packets between two devices. Reads commands from standard input."""
    ends = []
    for device in devices:
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        end.bind((device, ETH_P_ALL))
        ends.append(end)
    mode, delay = "pass", 0.0
    queue, order = [], 0
    print("ready", flush=True)
    while True:
        wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
        ready = select.select(ends + [sys.stdin], [], [], wait)[0]
        if sys.stdin in ready:
            words = os.read(0, 4096).decode().split()
            if not words:
                return
            mode, delay = words[-2], float(words[-1])
        for i, end in enumerate(ends):
            if end not in ready:
                continue
            packet, source = end.recvfrom(1 << 17)
            if source[2] == PACKET_OUTGOING or mode == "stall":
                continue
            if mode == "cut":
                packet = reset(packet)
                if packet is None:
                    continue
            order += 1
            heapq.heappush(queue, (time.monotonic() + delay, order, 1 - i, packet))
        while queue and queue[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(queue)
            try:
                ends[to].send(packet)
            except OSError:
                pass  # TCP sends it again.


# ---- The hosts ----


def run(*words):
    subprocess.run(words, check=True)


class Network:
    """Two hosts and the wire between them."""

    def __init__(self):
        self.spaces = ["gradflow%d_%s" % (os.getpid(), name) for name in ("a", "b", "wire")]

    def __enter__(self):
        for space in self.spaces:
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "set", "lo", "up")
        for i, space in enumerate(self.spaces[:2]):
            run("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name",
                "port%d" % i, "netns", self.spaces[2])
            run("ip", "-n", space, "address", "add", ADDRESSES[i] + "/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            run("ip", "-n", self.spaces[2], "link", "set", "port%d" % i, "up")
        self.wire = subprocess.Popen(
            ["ip", "netns", "exec", self.spaces[2], sys.executable, __file__, "--wire"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.wire.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *unused):
        self.wire.stdin.close()
        self.wire.wait()
        for space in self.spaces:
            run("ip", "netns", "del", space)

    def disturb(self, mode, delay=0.0):
        self.wire.stdin.write("%s %f\n" % (mode, delay))
        self.wire.stdin.flush()

    def start(self, program, timeout, arguments):
        """Starts the ranks. Ranks on the host of rank 0 reach it by a loopback address."""
        ranks = []
        for rank in range(RANKS):
            host = rank * 2 // RANKS
            address = "%s:%d" % ("127.0.0.1" if host == 0 else ADDRESSES[0], PORT)
            ranks.append(subprocess.Popen(
                ["ip", "netns", "exec", self.spaces[host], program, address, str(rank), str(RANKS),
                 str(int(1000 * timeout))] + [str(a) for a in arguments],
                stdout=subprocess.PIPE, text=True))
        return ranks


def finish(name, ranks):
    outputs = [rank.communicate()[0] for rank in ranks]
    ok = all(rank.returncode == 0 for rank in ranks)
    print("%-40s %s" % (name, "ok" if ok else "FAILED: " + " | ".join(outputs)), flush=True)
    return ok


def disturbed(network, name, program, timeout, mode):
    """Disturbs ranks that sum tensors, and expects an error of each rank."""
    network.disturb("pass")
    ranks = network.start(program, timeout, ["loop", 1 << 20])
    for rank in ranks:
        assert rank.stdout.readline() == "connected\n"
    for _ in range(5):
        for rank in ranks:
            assert rank.stdout.readline().startswith("step")
    network.disturb(mode)
    ok, slowest = True, 0.0
    for rank in ranks:
        output = rank.communicate()[0]
        error = re.search(r"^error (\d+) (UNAVAILABLE|DEADLINE_EXCEEDED): .*group 1", output, re.M)
        taken = float(error.group(1)) / 1000 if error else float("inf")
        slowest = max(slowest, taken)
        ok = ok and rank.returncode == 1 and taken <= timeout + ALLOWED
        if not error:
            print(output)
    print("%-40s %s, slowest error after %.2f s; the timeout is %.2f s" %
          (name, "ok" if ok else "FAILED", slowest, timeout), flush=True)
    return ok


def main():
    program, rounds = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else 200
    results = []
    with Network() as network:
        long = 120
        results.append(finish("random calls", network.start(program, long, ["random", 1, rounds])))
        results.append(finish("random faults", network.start(program, long, ["faults", 2, 60])))
        network.disturb("pass", 0.01)
        results.append(
            finish("random calls, 10 ms of delay", network.start(program, long, ["random", 3, 60])))
        for repeat in range(3):
            results.append(disturbed(network, "stalled %d" % repeat, program, 2, "stall"))
            results.append(disturbed(network, "cut %d" % repeat, program, 2, "cut"))
    return 0 if all(results) else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--wire"]:
        wire(["port0", "port1"])
    else:
        sys.exit(main())
