"""The switch tester of os-ken, extended to process a shared queue.

    osken-manager --test-switch-dir QUEUE [..] judge.py

QUEUE contains symbolic links to files of test cases. The process that renames a link
into its own directory `claimed` runs that file. Each case becomes a line of JSON in
`verdicts.jsonl`, in the working directory. os-ken defines the meaning of the cases.
"""

import json
import logging
import os
import socket
import time

from os_ken.lib import hub
from os_ken.lib.packet import sctp
from os_ken.tests.switch import tester

# os-ken computes the CRC of SCTP over the text that Python 3 prints for the bytes.
# With the bytes as characters, it computes the CRC of RFC 9260, appendix A, so that
# cases which rewrite SCTP's ports detect a wrong checksum.
crc_of_text = sctp.sctp._checksum  # pylint: disable=protected-access
sctp.sctp._checksum = lambda self, data: crc_of_text(self, data.decode("latin-1"))


# Minimum duration of a round of sending, in seconds.
ROUND = 0.002

# Maximum delay that a round compensates, in seconds: fewer frames than the default burst
# of a meter, so that a late round does not exceed the rate.
PORTION = 0.01

# Attempts of a case whose frames were not sent at the required rate, which a busy machine
# causes and not the switch.
TRIES = 3
# Minimum share of the required frames that must be sent.
ENOUGH = 0.99


class Judge(tester.OfTester):
    """Runs cases until the queue is empty."""

    # Reason for the failure of the current case, or None.
    reason = None
    # Frames per second sent last, and the required rate, of a case with a rate.
    offered = wanted = None

    def _set_logger(self):
        # The full log would be megabytes; the reasons are in the verdicts.
        self.logger.setLevel(logging.WARNING)

    def _test_sequential_execute(self, test_dir):
        os.mkdir("claimed")
        with open("verdicts.jsonl", "w", buffering=1) as verdicts:
            for path in claims(test_dir):
                self.judge_file(path, verdicts)
        self._test_end()

    def judge_file(self, path, verdicts):
        """Runs the cases of one file, numbered from 1."""
        for number, case in enumerate(tester.TestFile(path, self.logger).tests, 1):
            start = time.monotonic()
            for _ in range(TRIES):
                self.offered = self.wanted = None
                reason = self.judge(case)
                if reason is None or self.has_offered_enough():
                    break
            verdict = {
                "file": os.path.realpath(path),
                "number": number,
                "reason": reason,
                "seconds": round(time.monotonic() - start, 3),
            }
            verdicts.write(json.dumps(verdict) + "\n")

    def has_offered_enough(self):
        """Returns true if a case received its required rate; most cases have none."""
        return self.offered is None or self.offered >= ENOUGH * self.wanted

    def judge(self, case):
        """Runs one case and returns why it failed, or None."""
        self.reason = None
        try:
            result = self._test_execute(case, None)
        except Exception as fault:  # pylint: disable=broad-except
            # Its assertions on replies would end the whole run.
            self.waiter = None
            return self.reason or f"{type(fault).__name__}: {fault}"
        return None if result == tester.TEST_OK else self.reason or result

    def _test(self, state, *args):
        try:
            return super()._test(state, *args)
        except (tester.TestMessageBase, AssertionError) as fault:
            self.reason = str(fault) or f"an assertion in state {state}"
            if state == tester.STATE_THROUGHPUT_CHK and self.offered:
                self.reason += f" (offered: {self.offered:.0f} frames a second)"
            raise

    def _compare_flow(self, installed, wanted):
        # The tester compares the texts of the sent and the received match, so that an
        # address in a longer form (10::0 for 10::) fails. Compare both as decoded.
        if hasattr(wanted.match, "parser"):
            wire = bytearray()
            wanted.match.serialize(wire, 0)
            wanted.match = type(wanted.match).parser(bytes(wire), 0)
        return super()._compare_flow(installed, wanted)

    def _send_packet_thread(self, arg):
        # os-ken's own sender counts rounds instead of time, and its switch sends each frame
        # by a packet-out: it sends too few frames, and its busy switch loses frames at the
        # other end of the link. This sender uses the clock and writes to the interface.
        rate = arg["packet_counter_inc"] / tester.CONTINUOUS_THREAD_INTVL
        cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        cable.bind((f"t{self.tester_sw.tester_send_port}", 0))
        start, sent = time.monotonic(), 0
        self.wanted = rate
        while self.ingress_event is not None and not self.ingress_event.is_set():
            hub.sleep(ROUND)
            elapsed = time.monotonic() - start
            # Delays are compensated in small portions: a burst would be lost.
            due = min(int(elapsed * rate) - sent, int(PORTION * rate) + 1)
            for _ in range(due):
                cable.send(frame(arg))
                sent += 1
            self.offered = sent / elapsed


def frame(arg):
    """Returns the bytes of a frame, which may differ in each call."""
    if not arg["randomize"]:
        return arg["packet_binary"]
    layers = eval("/".join(arg["packet_text"]), vars(tester))  # pylint: disable=eval-used
    layers.serialize()
    return layers.data


def claims(queue):
    """Yields files that no other process has claimed, until none is left."""
    for name in sorted(os.listdir(queue)):
        claimed = os.path.join("claimed", name)
        try:
            os.rename(os.path.join(queue, name), claimed)
        except FileNotFoundError:
            continue
        yield claimed
