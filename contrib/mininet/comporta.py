"""Comporta as a switch of Mininet, with or without Open vSwitch.

    mn --custom comporta.py --switch comporta --test pingall
    mn --custom comporta.py --switch comporta,failMode=standalone --controller none
    mn --custom comporta.py --switch comporta,options='--cores 1,2'

Each switch is a process `comporta switch` without a database. It needs only the binary, from PATH
or from the variable COMPORTA. A network may mix switches of this class and of Mininet's
`OVSSwitch`. Where `comporta vswitchd` replaces ovs-vswitchd, Mininet's `OVSSwitch` uses Comporta
without this file.
"""

import os
import shutil
import tempfile
import time

from mininet.log import error
from mininet.moduledeps import pathCheck
from mininet.node import Switch

# Time limit for the start of a switch, in seconds.
START_TIMEOUT = 60


class ComportaSwitch(Switch):
    """A switch of Mininet as a process of Comporta."""

    def __init__(self, name, failMode='secure', protocols=None, options='', **params):
        """failMode: mode without a controller, 'secure' or 'standalone'.
        protocols: OpenFlow versions, as 'OpenFlow13'; several as a list or separated by commas.
        options: further options of `comporta switch`."""
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
        """Reports missing programs before the network is built."""
        pathCheck(cls.binary(), 'ovs-ofctl', moduleName='Comporta')

    def start(self, controllers):
        """Starts the process, and returns when it forwards frames."""
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
        deadline = time.time() + START_TIMEOUT
        while ' INFO ready' not in self.log_text():
            if self.process.poll() is not None or time.time() > deadline:
                error('%s does not start:\n%s' % (self.name, self.log_text()))
                raise RuntimeError('%s does not start' % self.name)
            time.sleep(0.02)

    def _log(self):
        return os.path.join(self.rundir, 'log')

    def log_text(self):
        """Returns the log of the switch."""
        with open(self._log()) as log:
            return log.read()

    def attach(self, interface):
        """Unsupported while the switch runs."""
        raise NotImplementedError('a ComportaSwitch cannot change its ports after the start')

    def detach(self, interface):
        """Unsupported while the switch runs."""
        raise NotImplementedError('a ComportaSwitch cannot change its ports after the start')

    def management(self):
        """Returns the switch argument for `ovs-ofctl`."""
        return 'unix:%s/%s.mgmt' % (self.rundir, self.name)

    def dpctl(self, *words):
        """Runs `ovs-ofctl` on the switch: `dpctl dump-flows` at the prompt."""
        if not self.rundir:
            return '%s is not started\n' % self.name
        versions = ['-O', self.protocols] if isinstance(self.protocols, str) else []
        return self.cmd('ovs-ofctl', *versions, words[0], self.management(), *words[1:])

    def connected(self):
        """Returns true if a controller is connected, or none is needed in standalone mode."""
        if self.fail_mode == 'standalone':
            return True
        return self.process is not None and 'controller connected' in self.log_text()

    def stop(self, deleteIntfs=True):
        """Ends the process and waits for its end."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
        Switch.stop(self, deleteIntfs)
        if self.rundir:
            shutil.rmtree(self.rundir, ignore_errors=True)
            self.rundir = None


switches = {'comporta': ComportaSwitch}
