"""A running Mininet network: two switches in a row with rate-limited links.

Prints a line for each measurement of a test. The rate is that of UDP, whose packets cross the
switch one by one; TCP crosses it in large segments.
"""

import json
import sys
from functools import partial

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSController, OVSSwitch
from mininet.topo import LinearTopo

RATE = 5
OFFERED = 50


def rate(net):
    """Returns the received rate of UDP, in Mbit/s."""
    one, two = net.get('h1', 'h2')
    server = two.popen('iperf3 --server --one-off --forceflush')
    for line in server.stdout:
        if b'listening' in line:
            break
    report = one.cmd('iperf3 --client %s --udp --length 1200 --time 2 --json --bitrate %dM' % (two.IP(), OFFERED))
    server.wait()
    return json.loads(report)['end']['sum_received']['bits_per_second'] / 1e6


def reached(net, wanted, attempts=30):
    """Returns true if the loss of all pings reaches this value, in per cent, in time."""
    for _ in range(attempts):
        loss = net.pingAll(timeout=1)
        if loss == wanted:
            return True
    return False


def main():
    """Builds the network, measures, and removes it."""
    switch = partial(OVSSwitch, datapath=sys.argv[1])
    net = Mininet(topo=LinearTopo(2), switch=switch, controller=OVSController,
                  link=partial(TCLink, bw=RATE), autoSetMacs=True)
    net.start()
    print('connected', net.waitConnected(timeout=60))
    print('reached', reached(net, 0))
    print('rate', rate(net) < 1.3 * RATE)
    net.configLinkStatus('s1', 's2', 'down')
    print('cut', reached(net, 100))
    net.configLinkStatus('s1', 's2', 'up')
    print('mended', reached(net, 0))
    net.stop()


main()
