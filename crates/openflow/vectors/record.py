"""Records messages that Open vSwitch and ovs-ofctl write to each other.

    unshare -n python3 record.py FOLDER

It starts an Open vSwitch with a dummy data path in FOLDER, which must not exist, and
ovs-ofctl connects to it through a recorder, in each version. FOLDER/v11.txt and so on
then contain one vector of each message and kind of statistics. Copy the required vectors
into the files next to this one, which `UPDATE=1 cargo test -p openflow --test vectors`
completes.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
import time

VERSIONS = {10: "OpenFlow10", 11: "OpenFlow11", 12: "OpenFlow12", 13: "OpenFlow13", 14: "OpenFlow14", 15: "OpenFlow15"}
NICIRA = 0x2320
MULTIPART = {10: (16, 17), 11: (18, 19), 12: (18, 19), 13: (18, 19), 14: (18, 19), 15: (18, 19)}
# Kinds of statistics of all 254 tables: counters, features, descriptions.
TABLES = (b"\0\3", b"\0\14", b"\0\16")

# Commands of ovs-ofctl in every version; it reports those that a version lacks.
COMMANDS = """
set-frags BR drop
set-frags BR normal
mod-table BR 0 controller
--bundle add-flow BR in_port=1,actions=2
add-group BR group_id=1,type=all,bucket=actions=output:1
dump-tables BR
dump-table-features BR
dump-table-desc BR
queue-stats BR
add-flow BR priority=9,arp,actions=CONTROLLER
dump-flows BR
add-tlv-map BR {class=0xffff,type=0,len=4}->tun_metadata0,{class=0x102,type=0x80,len=8}->tun_metadata5
dump-tlv-map BR
del-tlv-map BR
probe BR
"""


class Recorder:
    """Proxy between the clients and the switch that records the messages."""

    def __init__(self, folder):
        self.folder, self.messages = folder, []
        # Messages of this script itself are not recorded.
        for name, both in ("recorder", True), ("switch-only", False):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{folder}/{name}")
            listener.listen()
            threading.Thread(target=self.accept, args=(listener, both), daemon=True).start()

    def accept(self, listener, both):
        while True:
            client, _ = listener.accept()
            switch = socket.socket(socket.AF_UNIX)
            switch.connect(f"{self.folder}/br.mgmt")
            for ways in (client, switch, both), (switch, client, True):
                threading.Thread(target=self.pass_on, args=ways, daemon=True).start()

    def pass_on(self, source, sink, kept):
        for message in messages(source):
            if kept:
                self.messages.append(message)
            try:
                sink.sendall(message)
            except OSError:
                return
        sink.close()


def messages(source):
    """Yields the received messages until the peer closes the connection."""
    data = b""
    while True:
        while len(data) >= 8 and len(data) >= (length := struct.unpack("!H", data[2:4])[0]):
            yield data[:length]
            data = data[length:]
        try:
            more = source.recv(65536)
        except OSError:
            return
        if not more:
            return
        data += more


class Controller:
    """A client for requests that ovs-ofctl does not send."""

    def __init__(self, folder, version):
        self.version = version
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{folder}/switch-only")
        self.say(0)
        threading.Thread(target=lambda: list(messages(self.socket)), daemon=True).start()

    def say(self, kind, body=b""):
        self.socket.sendall(struct.pack("!BBHI", self.version - 9, kind, 8 + len(body), 7) + body)
        time.sleep(0.05)


def start(folder):
    """Starts Open vSwitch with a bridge `br` and the ports p1 and p2."""
    os.mkdir(folder)
    os.environ["OVS_RUNDIR"] = os.environ["OVS_LOGDIR"] = folder
    run("ovsdb-tool", "create", f"{folder}/db", "/usr/share/openvswitch/vswitch.ovsschema")
    daemons = [
        subprocess.Popen(["ovsdb-server", f"{folder}/db", f"--remote=punix:{folder}/db.sock", "--log-file=/dev/null"]),
        subprocess.Popen(
            ["ovs-vswitchd", f"unix:{folder}/db.sock", "--enable-dummy", "--disable-system", "--pidfile",
             "--log-file=/dev/null", "-vconsole:off"]
        ),
    ]
    vsctl(folder, "--", "--may-exist", "add-br", "br", "--", "set", "bridge", "br", "datapath_type=dummy",
          "fail-mode=secure", "protocols=" + ",".join(VERSIONS.values()),
          "--", "add-port", "br", "p1", "--", "set", "interface", "p1", "type=dummy", "ofport_request=1",
          "--", "add-port", "br", "p2", "--", "set", "interface", "p2", "type=dummy", "ofport_request=2")
    return daemons


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=20, check=False).stdout


def vsctl(folder, *words):
    for _ in range(50):
        if os.path.exists(f"{folder}/db.sock"):
            break
        time.sleep(0.1)
    return run("ovs-vsctl", f"--db=unix:{folder}/db.sock", *words)


def provoke(folder, version):
    """Makes the switch send its messages in `version`."""
    for command in COMMANDS.strip().splitlines():
        words = command.replace("BR", f"unix:{folder}/recorder").split()
        run("ovs-ofctl", "-O", VERSIONS[version], *words)
    monitor = watch(folder, version, "64", "-P", "standard")
    speakers = [Controller(folder, version), Controller(folder, version)]
    for speaker in speakers:
        speaker.say(2, b"what is said comes back")
        speaker.say(99)
        if version < 12:
            speaker.say(4, struct.pack("!III", NICIRA, 10, 0))
            speaker.say(4, struct.pack("!III", NICIRA, 10, 1))
        else:
            speaker.say(24, struct.pack("!IIQ", 1, 0, 0))
            speaker.say(24, struct.pack("!IIQ", 2, 0, 1))
        if version > 12:
            speaker.say(26)
        speaker.say(9, struct.pack("!HH", 0, 128))
        if version < 13:
            # Request the forwarding of group requests of other controllers.
            speaker.say(4, struct.pack("!IIHHI", NICIRA, 27, 11, 8, 3))
    run("ovs-ofctl", "-O", VERSIONS[version], "add-group", f"unix:{folder}/recorder", "group_id=2,type=all,bucket=output:1")
    receive(folder)
    vsctl(folder, "add-port", "br", "p3", "--", "set", "interface", "p3", "type=dummy")
    vsctl(folder, "del-port", "br", "p3")
    time.sleep(0.3)
    monitor.terminate()
    monitor.wait()
    for speaker in speakers:
        speaker.socket.close()
    run("ovs-ofctl", "-O", VERSIONS[version], "add-flow", f"{folder}/br.mgmt",
        "priority=10,arp,actions=load:7->NXM_NX_REG1[],controller(pause,userdata=01.02.03),output:1")
    for form in "nxt_packet_in", "nxt_packet_in2":
        monitor = watch(folder, version, "resume", "-P", form)
        receive(folder)
        time.sleep(0.3)
        monitor.terminate()
        monitor.wait()
    run("ovs-ofctl", "-O", VERSIONS[version], "del-groups", f"{folder}/br.mgmt")
    run("ovs-ofctl", "-O", "OpenFlow13", "del-flows", f"{folder}/br.mgmt")


def watch(folder, version, *words):
    """Starts an ovs-ofctl that monitors the switch."""
    monitor = subprocess.Popen(
        ["ovs-ofctl", "-O", VERSIONS[version], "monitor", f"unix:{folder}/recorder", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    time.sleep(0.3)
    return monitor


def receive(folder):
    """Injects a received packet."""
    run("ovs-appctl", "-t", f"{folder}/ovs-vswitchd.{pid(folder)}.ctl", "netdev-dummy/receive", "p2",
        "in_port(2),eth(src=02:00:00:00:00:01,dst=ff:ff:ff:ff:ff:ff),eth_type(0x0806),"
        "arp(sip=10.0.0.1,tip=10.0.0.2,op=1,sha=02:00:00:00:00:01,tha=00:00:00:00:00:00)")


def pid(folder):
    with open(f"{folder}/ovs-vswitchd.pid") as file:
        return file.read().strip()


def kind(message, version):
    """Returns the key of messages of the same kind."""
    number = message[1]
    if number == 4:
        return (number, message[8:16])
    if number in MULTIPART[version]:
        return (number, message[8:10])
    return (number, b"")


def write(folder, version, messages):
    """Writes one vector for each kind of message of `version`; statistics of tables are
    reduced to the last two tables."""
    kinds = {}
    for message in messages:
        if message[0] == version - 9:
            # The last part of a long reply: the shortest.
            kinds[kind(message, version)] = message
    with open(f"{folder}/v{version}.txt", "w") as file:
        for message in kinds.values():
            if message[1] == 19 and message[8:10] in TABLES:
                message = cut(message, version)
            digits = message.hex()
            words = [digits[at : at + 8] for at in range(0, len(digits), 8)]
            printed = run("ovs-ofctl", "ofp-print", digits)
            file.write(f"\n-- {printed.split(' (')[0]}\n")
            for at in range(0, len(words), 8):
                file.write("| " + " ".join(words[at : at + 8]) + "\n")
            for line in printed.splitlines():
                if line.strip():
                    file.write(f": {line}\n")


def cut(message, version):
    """Keeps the last two parts of a reply."""
    parts, at = [], 16
    while at < len(message):
        fixed = {11: 88, 12: 128}.get(version, 24)
        size = fixed if message[9] == 3 else struct.unpack("!H", message[at : at + 2])[0]
        size = (size + 7) // 8 * 8
        parts.append(message[at : at + size])
        at += size
    body = b"".join(parts[-2:])
    return message[:2] + struct.pack("!H", 16 + len(body)) + message[4:10] + bytes(6) + body


def main(folder):
    daemons = start(folder)
    try:
        recorder = Recorder(folder)
        for version in VERSIONS:
            recorder.messages.clear()
            provoke(folder, version)
            write(folder, version, list(recorder.messages))
    finally:
        for daemon in daemons:
            daemon.terminate()


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
