"""Runs a program at a pseudo-terminal: waits for text on the screen and presses keys.

    terminal.py STEP... -- PROGRAM ARGUMENT...

A step is see:WORDS (waits until the program has written them since the last step), press:KEYS (with
Python's escapes), do:COMMAND (a shell command), term (SIGTERM), or hangup (closes the terminal; the
last step). At the end the output of the program is printed, then a line with its exit code and the
state of the terminal.
"""

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE = 30
ROWS, COLUMNS = 45, 160


def main():
    split = sys.argv.index("--")
    steps, program = sys.argv[1:split], sys.argv[split + 1:]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    before = termios.tcgetattr(slave)
    child = os.fork()
    if child == 0:
        os.login_tty(slave)
        os.execvp(program[0], program)
    written = bytearray()
    seen = 0

    def read(until, what):
        end = time.monotonic() + PATIENCE
        while not until():
            ready, _, _ = select.select([master], [], [], 0.1)
            if ready:
                written.extend(os.read(master, 65536))
            elif time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                sys.exit(f"in vain: {what}\n{bytes(written)!r}")

    for step in steps:
        kind, _, words = step.partition(":")
        if kind == "see":
            words = words.encode()
            read(lambda: words in written[seen:], step)
        elif kind == "press":
            seen = len(written)
            os.write(master, codecs.decode(words, "unicode_escape").encode())
        elif kind == "do":
            subprocess.run(words, shell=True, check=True)
        elif kind == "hangup":
            os.close(slave)
            os.close(master)
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                if (status := os.waitpid(child, os.WNOHANG))[0]:
                    print(f"ended {os.waitstatus_to_exitcode(status[1])}")
                    return
                time.sleep(0.05)
            os.kill(child, signal.SIGKILL)
            sys.exit("the program did not end after the hangup")
        else:
            os.kill(child, signal.SIGTERM)
    ended = []

    def has_ended():
        if not ended and (status := os.waitpid(child, os.WNOHANG))[0]:
            ended.append(os.waitstatus_to_exitcode(status[1]))
        return bool(ended)

    read(has_ended, "its end")
    while select.select([master], [], [], 0)[0]:
        written.extend(os.read(master, 65536))
    sys.stdout.write(written.decode(errors="replace"))
    restored = termios.tcgetattr(slave) == before
    print(f"\nended {ended[0]}, terminal restored: {restored}")



main()
