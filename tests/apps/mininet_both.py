"""A Mininet network with a switch of Comporta's class and one of Open vSwitch's."""

import sys

from mininet.net import Mininet
from mininet.node import OVSController, OVSSwitch

sys.path.insert(0, sys.argv[1])
from comporta import ComportaSwitch  # noqa: E402  (an argument has its directory)


def main():
    """Builds the network, measures, and removes it."""
    net = Mininet(controller=OVSController)
    net.addController('c0')
    ours = net.addSwitch('s1', cls=ComportaSwitch)
    theirs = net.addSwitch('s2', cls=OVSSwitch)
    net.addLink(net.addHost('h1'), ours)
    net.addLink(ours, theirs)
    net.addLink(theirs, net.addHost('h2'))
    net.start()
    print('connected', net.waitConnected(timeout=60))
    print('reached', any(net.pingAll(timeout=1) == 0 for _ in range(30)))
    ours.dpctl('add-flow', 'priority=60000,icmp,actions=drop')
    print('a rule of its own', net.pingAll(timeout=1) == 100)
    net.stop()


main()
