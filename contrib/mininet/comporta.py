"""Comporta as a switch of Mininet, beside Open vSwitch or without it.

    mn --custom comporta.py --switch comporta --test pingall
    mn --custom comporta.py --switch comporta,failMode=standalone --controller none
    mn --custom comporta.py --switch comporta,options='--cores 1,2'

Each switch is a process `comporta switch` of its own, without a database: what it needs is the
binary, from PATH or named by the variable COMPORTA. A network may have switches of this class and
of Mininet's `OVSSwitch` together. Whoever has `comporta vswitchd` in the place of ovs-vswitchd
needs none of this: there, Mininet's `OVSSwitch` is Comporta already.
"""

import os
import shutil
import tempfile
import time

from mininet.log import error
from mininet.moduledeps import pathCheck
from mininet.node import Switch

# How long a switch may take to be ready, in seconds.
PATIENCE = 60


class ComportaSwitch(Switch):
    """A switch of Mininet that is a process of Comporta."""

    def __init__(self, name, failMode='secure', protocols=None, options='', **params):
        """failMode: what it does without a controller, 'secure' or 'standalone'.
        protocols: versions of OpenFlow, as 'OpenFlow13'; several as a list, or in a string with
        commas. options: more of `comporta switch`'s."""
        Switch.__init__(self, name, **params)
        self.fail_mode = failMode
        self.protocols = protocols
        self.options = options
        self.rundir = None
        self.process = None

    @classmethod
    def binary(cls):
        """The program that this class starts."""
        return os.environ.get('COMPORTA', 'comporta')

    @classmethod
    def setup(cls):
        """Says what is missing, before anything is made."""
        pathCheck(cls.binary(), 'ovs-ofctl', moduleName='Comporta')

    def start(self, controllers):
        """Starts the process, and returns when frames go through it."""
        self.rundir = tempfile.mkdtemp(prefix='comporta-%s-' % self.name)
        ports = ['%s=%d' % (interface.name, number)
                 for number, interface in sorted(self.intfs.items())
                 if number and not interface.IP()]
        words = [self.binary(), 'switch', '--bridge', self.name, '--rundir', self.rundir,
                 '--datapath-id', self.dpid, '--fail-mode', self.fail_mode]
        words += [word for port in ports for word in ('--port', port)]
        for controller in controllers:
            target = '%s:%s:%d' % (controller.protocol, controller.IP(), controller.port)
            words += ['--controller', target]
        if self.listenPort:
            words += ['--listen', 'ptcp:%d:127.0.0.1' % self.listenPort]
        if self.protocols:
            versions = self.protocols
            if not isinstance(versions, str):
                versions = ','.join(versions)
            words += ['--protocols', versions]
        words += self.options.split()
        with open(self._log(), 'w') as log:
            self.process = self.popen(words, stdout=log, stderr=log)
        deadline = time.time() + PATIENCE
        while ' INFO ready' not in self.said():
            if self.process.poll() is not None or time.time() > deadline:
                error('%s does not start:\n%s' % (self.name, self.said()))
                raise RuntimeError('%s does not start' % self.name)
            time.sleep(0.02)

    def _log(self):
        return os.path.join(self.rundir, 'log')

    def said(self):
        """What the switch has said so far."""
        with open(self._log()) as log:
            return log.read()

    def attach(self, interface):
        """Not while it runs."""
        raise NotImplementedError('ports of a ComportaSwitch are those that it has at its start')

    def detach(self, interface):
        """Not while it runs."""
        raise NotImplementedError('ports of a ComportaSwitch are those that it has at its start')

    def management(self):
        """What `ovs-ofctl` is to be told in place of a bridge's name."""
        return 'unix:%s/%s.mgmt' % (self.rundir, self.name)

    def dpctl(self, *words):
        """Runs `ovs-ofctl` on the switch, the command first: `dpctl dump-flows` of the prompt."""
        if not self.rundir:
            return '%s is not started\n' % self.name
        versions = ['-O', self.protocols] if isinstance(self.protocols, str) else []
        return self.cmd('ovs-ofctl', *versions, words[0], self.management(), *words[1:])

    def connected(self):
        """Whether a controller has been met; in standalone mode none is needed."""
        if self.fail_mode == 'standalone':
            return True
        return self.process is not None and 'controller connected' in self.said()

    def stop(self, deleteIntfs=True):
        """Ends the process, and waits until it has."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
        Switch.stop(self, deleteIntfs)
        if self.rundir:
            shutil.rmtree(self.rundir, ignore_errors=True)
            self.rundir = None


switches = {'comporta': ComportaSwitch}
