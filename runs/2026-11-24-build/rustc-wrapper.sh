#!/bin/bash
name=none; prev=; for a in "$@"; do [ "$prev" = --crate-name ] && name=$a; prev=$a; done
exec /usr/bin/time -a -o $BTLOG -f "%U %S %e $name" "$@"
