"""The switch tester of os-ken, made to work off a queue that several share.

    osken-manager --test-switch-dir QUEUE [..] judge.py

QUEUE holds symbolic links to files of test cases. Whoever renames a link into its
own directory `claimed` runs that file. Each case becomes a line of JSON in
`verdicts.jsonl`, in the working directory. What a case means is os-ken's business.
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
# Given the bytes as characters, it computes that of RFC 9260, appendix A, so that
# the cases which rewrite SCTP's ports can tell a right checksum from a wrong one.
crc_of_text = sctp.sctp._checksum  # pylint: disable=protected-access
sctp.sctp._checksum = lambda self, data: crc_of_text(self, data.decode("latin-1"))


# How long a round of sending takes at least, in seconds.
ROUND = 0.002

# The most that a round makes up for, in seconds: fewer frames than a meter lets pass at
# once where no burst is given, so that a late round is not taken for an excess.
PORTION = 0.01

# How often a case is tried whose frames were not sent as fast as it wants: on a busy
# machine that says nothing of the switch.
TRIES = 3
# The share of them that has to be sent.
ENOUGH = 0.99


class Judge(tester.OfTester):
    """Runs cases until the queue is empty."""

    # Why the case that runs now fails, if it does.
    reason = None
    # Frames a second that were sent last, of a case that wants many, and how many it wants.
    offered = wanted = None

    def _set_logger(self):
        # The whole story would be megabytes; the reasons are in the verdicts.
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
        """Whether a case got the frames that it wants; most want none at a rate."""
        return self.offered is None or self.offered >= ENOUGH * self.wanted

    def judge(self, case):
        """Runs one case and returns why it failed, or None."""
        self.reason = None
        try:
            result = self._test_execute(case, None)
        except Exception as fault:  # pylint: disable=broad-except
            # Its assertions on what a switch answers would end the whole run.
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
        # It compares matches as the texts of what was written and what was read, so
        # that an address fails which the case wrote in a longer form (10::0 for
        # 10::). Both as they are read from the wire.
        if hasattr(wanted.match, "parser"):
            wire = bytearray()
            wanted.match.serialize(wire, 0)
            wanted.match = type(wanted.match).parser(bytes(wire), 0)
        return super()._compare_flow(installed, wanted)

    def _send_packet_thread(self, arg):
        # os-ken's own counts its rounds for time and has its switch send each frame for a
        # message. So it offers too little, and its switch, busy with messages, loses
        # frames at the other cable's end. By the clock, and straight into the cable.
        rate = arg["packet_counter_inc"] / tester.CONTINUOUS_THREAD_INTVL
        cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        cable.bind((f"t{self.tester_sw.tester_send_port}", 0))
        start, sent = time.monotonic(), 0
        self.wanted = rate
        while self.ingress_event is not None and not self.ingress_event.is_set():
            hub.sleep(ROUND)
            elapsed = time.monotonic() - start
            # What was missed is made up for in small portions: a burst would be lost.
            due = min(int(elapsed * rate) - sent, int(PORTION * rate) + 1)
            for _ in range(due):
                cable.send(frame(arg))
                sent += 1
            self.offered = sent / elapsed


def frame(arg):
    """Returns the bytes of a frame, which may be another each time."""
    if not arg["randomize"]:
        return arg["packet_binary"]
    layers = eval("/".join(arg["packet_text"]), vars(tester))  # pylint: disable=eval-used
    layers.serialize()
    return layers.data


def claims(queue):
    """Yields files that nobody else has claimed, until there are none."""
    for name in sorted(os.listdir(queue)):
        claimed = os.path.join("claimed", name)
        try:
            os.rename(os.path.join(queue, name), claimed)
        except FileNotFoundError:
            continue
        yield claimed
