"""Open vSwitch with dummy interfaces in a temporary directory, and the files of recorded rules."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"

# Properties that differ from run to run, or that remove a rule.
VOLATILE = re.compile(r"(cookie=0x[0-9a-f]+|(idle|hard)_timeout=\d+|send_flow_rem|reset_counts),? ?")


class Site:
    """A directory with the databases and processes of one switch."""

    def __init__(self, schemas):
        self.directory = tempfile.mkdtemp()
        self.processes = []
        self.version = "OpenFlow15"
        self.environment = {**os.environ, "OVS_RUNDIR": self.directory, "OVN_RUNDIR": self.directory,
                            "OVS_LOGDIR": self.directory, "OVN_LOGDIR": self.directory}
        for name, schema in schemas.items():
            self.run("ovsdb-tool", "create", f"{name}.db", schema)
            self.start("ovsdb-server", f"{name}.db", f"--remote=punix:{name}.sock", f"--unixctl={name}.ctl")
        for name in schemas:
            wait_for(lambda: os.path.exists(f"{self.directory}/{name}.sock"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory)

    def remote(self, name):
        return f"unix:{self.directory}/{name}.sock"

    def start(self, *words, **environment):
        log = open(f"{self.directory}/{pathlib.Path(words[0]).name}.err", "a", encoding="utf-8")
        process = subprocess.Popen(words, cwd=self.directory, env={**self.environment, **environment},
                                   stdout=log, stderr=log)
        self.processes.append(process)

    def run(self, *words):
        done = subprocess.run(words, cwd=self.directory, env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout

    def start_switch(self):
        self.start(os.environ.get("SWITCH", "ovs-vswitchd"), self.remote("db"), "--enable-dummy=override",
                   "--disable-system", f"--unixctl={self.directory}/vswitchd.ctl")
        self.vsctl("--no-wait", "init")

    def add_bridge(self, name, *columns):
        self.vsctl("add-br", name, "--", "set", "bridge", name, "fail_mode=secure", "datapath_type=dummy",
                   *columns)

    def add_port(self, bridge, name, number, *columns):
        self.vsctl("add-port", bridge, name, "--", "set", "interface", name, "type=dummy",
                   f"ofport_request={number}", *columns)

    def vsctl(self, *words):
        return self.run("ovs-vsctl", f"--db={self.remote('db')}", "--timeout=60", *words)

    def appctl(self, *words):
        return self.run("ovs-appctl", "-t", f"{self.directory}/vswitchd.ctl", *words)

    def dump(self, bridge, table):
        """Returns the lines of dump-flows, or those of dump-groups without their header."""
        socket = f"unix:{self.directory}/{bridge}.mgmt"
        text = self.run("ovs-ofctl", "-O", self.version, "--no-names", "--no-stats", table, socket)
        return [line.strip() for line in text.splitlines() if not line.startswith("OFPST_")]

    def steady_flows(self, bridge, least):
        """Waits until the bridge has this number of rules at least, which no longer change."""
        repeats, flows = 0, []
        while repeats < 3:
            time.sleep(2)
            found = self.dump(bridge, "dump-flows")
            repeats = repeats + 1 if len(found) == len(flows) and len(found) >= least else 0
            flows = found
        return flows

    def write(self, directory, flows, bridge):
        groups = self.dump(bridge, "dump-groups")
        write(directory, flows, groups)


def write(directory, flows, groups):
    """Writes flows.txt.gz and groups.txt."""
    out = pathlib.Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(out / "flows.txt.gz", "wb", mtime=0) as file:
        file.write("".join(f"{VOLATILE.sub('', flow).strip()}\n" for flow in flows).encode())
    (out / "groups.txt").write_text("".join(f"{group}\n" for group in groups), encoding="utf-8")
    print(f"{len(flows)} flows, {len(groups)} groups")


def arguments(description, count):
    """Returns the arguments of the command line, or prints the description."""
    if len(sys.argv) != 1 + count:
        sys.exit(description)
    return sys.argv[1:]


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)
