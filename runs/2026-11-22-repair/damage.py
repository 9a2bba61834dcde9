"""Overwrites bytes of a file: python3 damage.py FILE PLACE BYTES, with the place as a share of the file."""

import os
import sys

path, place, count = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
with open(path, "r+b") as file:
    file.seek(int(os.path.getsize(path) * place))
    file.write(b"\x55" * count)
