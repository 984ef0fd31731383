"""Stands in for a service: writes its pid to FILE when it is ready, appends its name to STOPS when asked to stop.

`stand_in.py FILE STOPS [ignore-stop|die]`
"""

import os
import pathlib
import signal
import sys

ready, stops, *behaviour = sys.argv[1:]


def stop(*_: object) -> None:
    with open(stops, "a") as file:
        file.write(pathlib.Path(ready).name + "\n")
    sys.exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if "ignore-stop" in behaviour else stop)
signal.signal(signal.SIGINT, stop)
if "die" in behaviour:
    sys.exit("no luck today")
pathlib.Path(ready + ".new").write_text(str(os.getpid()))
os.replace(ready + ".new", ready)
while True:
    signal.pause()
