#!/bin/bash
# load.sh BIN USERS NAME: load a population into BIN, print server CPU and bytes written
BIN=$1; U=$2; N=$3; D=./$N; rm -rf $D; mkdir -p $D
$BIN serve --data $D/d --listen 127.0.0.1:8311 --open > $D/serve.log 2>&1 & P=$!
for i in $(seq 100); do curl -fs localhost:8311/readyz >/dev/null && break; sleep 0.1; done
if [ -n "$PERF" ]; then perf record -F 199 -g -o $D/perf.data -p $P -- sleep $PERF >/dev/null 2>&1 & fi
S0=$(awk "{print \$7}" /sys/block/vda/stat); timeout ${T:-900} ${SIM:-$BIN} simulate --target localhost:8311 --users $U --load light --duration ${DUR:-5s} > $D/sim.log 2>&1
S1=$(awk "{print \$7}" /sys/block/vda/stat); echo "disk MB written: $(( (S1-S0)/2048 ))"; for t in /proc/$P/task/*; do echo "$(cat $t/comm) $(grep ^write_bytes $t/io) cpu $(awk '{print ($14+$15)/100}' $t/stat)"; done | grep -vE "write_bytes: 0 cpu 0(\.0.)?$"; cat /proc/$P/io | grep -E "^write_bytes"; cat /proc/$P/stat | awk '{print "cpu s", ($14+$15)/100}'; grep -E "VmHWM|VmRSS" /proc/$P/status
du -sh $D/d; grep -iE "follows|users|loaded" $D/sim.log | tail -8
curl -s localhost:8311/metrics | grep -iE "checkpoint" | grep -v "#" | grep -E "count|sum"
kill $P; wait $P 2>/dev/null
