"""Starts a program as a service manager does that has opened its sockets for it.

    activate.py NAME=FD... -- COMMAND...

The descriptors, which must be inherited, become 3, 4 and so on; the program is told how many there
are, what they are called, and that it is the one who is meant.
"""

import os
import sys


def main(words):
    end = words.index("--")
    names, numbers = zip(*(word.rsplit("=", 1) for word in words[:end]))
    # Out of the way first: where one goes another may be.
    moved = [os.dup(int(number)) for number in numbers]
    while any(number < 3 + len(moved) for number in moved):
        moved = [os.dup(number) for number in moved]
    for place, number in enumerate(moved, 3):
        os.dup2(number, place, inheritable=True)
    environment = {**os.environ, "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(moved)),
                   "LISTEN_FDNAMES": ":".join(names)}
    os.execve(words[end + 1], words[end + 1:], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
