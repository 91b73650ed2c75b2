"""The switch tester of os-ken, made to work off a queue that several share.

    osken-manager --test-switch-dir QUEUE [..] judge.py

QUEUE holds symbolic links to files of test cases. Whoever renames a link into its
own directory `claimed` runs that file. Each case becomes a line of JSON in
`verdicts.jsonl`, in the working directory. What a case means is os-ken's business.
"""

import json
import logging
import os
import time

from os_ken.lib.packet import sctp
from os_ken.tests.switch import tester

# os-ken computes the CRC of SCTP over the text that Python 3 prints for the bytes.
# Given the bytes as characters, it computes that of RFC 9260, appendix A, so that
# the cases which rewrite SCTP's ports can tell a right checksum from a wrong one.
crc_of_text = sctp.sctp._checksum  # pylint: disable=protected-access
sctp.sctp._checksum = lambda self, data: crc_of_text(self, data.decode("latin-1"))


class Judge(tester.OfTester):
    """Runs cases until the queue is empty."""

    # Why the case that runs now fails, if it does.
    reason = None

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
            reason = self.judge(case)
            verdict = {
                "file": os.path.realpath(path),
                "number": number,
                "reason": reason,
                "seconds": round(time.monotonic() - start, 3),
            }
            verdicts.write(json.dumps(verdict) + "\n")

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
            raise

    def _send_packet_thread(self, arg):
        # It counts its own rounds for time, and so falls behind by what each round
        # takes: a tenth and more of the load that the case asks for. By the clock.
        now = time.monotonic()
        per_round = arg.setdefault("per_round", arg["packet_counter_inc"])
        elapsed = now - arg.get("last", now - tester.CONTINUOUS_THREAD_INTVL)
        arg["packet_counter_inc"] = per_round * elapsed / tester.CONTINUOUS_THREAD_INTVL
        arg["last"] = now
        super()._send_packet_thread(arg)


def claims(queue):
    """Yields files that nobody else has claimed, until there are none."""
    for name in sorted(os.listdir(queue)):
        claimed = os.path.join("claimed", name)
        try:
            os.rename(os.path.join(queue, name), claimed)
        except FileNotFoundError:
            continue
        yield claimed
