#!/bin/bash
# Three NATS servers, three nodes; follows docs/cluster.md. BIN, OUT and arguments of simulate.
BIN=$(realpath "$1"); OUT=$(realpath -m "$2"); shift 2
N=${NATS:-nats-server}
rm -rf $OUT; mkdir -p $OUT; cd $OUT
nats() { cat > nats$1.conf <<X
server_name: nats-$1
listen: 127.0.0.1:$((14220+$1))
max_payload: 8MB
jetstream { store_dir: "$OUT/nats$1", sync_interval: always }
cluster { name: roost
 listen: 127.0.0.1:$((16220+$1))
 routes: [nats://127.0.0.1:16221, nats://127.0.0.1:16222, nats://127.0.0.1:16223] }
authorization { user: roost, password: PASSWORD }
X
$N --config nats$1.conf >> nats$1.log 2>&1 & echo $! > nats$1.pid; }
node() { $BIN serve --data $OUT/node$1 --listen 127.0.0.1:$((18990+$1)) >> node$1.log 2>&1 & echo $! > node$1.pid; }
for i in 1 2 3; do nats $i; done
export ROOST_KEY=0123456789abcdef0123456789abcdef ROOST_TARGET_KEY=0123456789abcdef0123456789abcdef
export ROOST_LOG_SERVERS='nats://roost:PASSWORD@127.0.0.1:14221,nats://127.0.0.1:14222,nats://127.0.0.1:14223'
sleep 6
$BIN cluster init --experimental --data $OUT/node1 && node 1
until curl -sf http://127.0.0.1:18991/readyz >/dev/null; do sleep 0.2; done
for i in 2 3; do $BIN cluster join --from http://127.0.0.1:18991 --data $OUT/node$i && node $i; until curl -sf http://127.0.0.1:1899$i/readyz >/dev/null; do sleep 0.2; done; done
idle() { for i in 1 2 3; do awk '{print $14+$15}' /proc/$(cat node$i.pid)/stat; done | paste -sd' '; }
echo "idle: $(idle)"; sleep 20; echo "idle 20 s later: $(idle)"
$BIN simulate --target http://127.0.0.1:18991,http://127.0.0.1:18992,http://127.0.0.1:18993 --plain "$@" --json sim.json --html sim.html > sim.txt 2>&1 &
S=$!
until grep -q " s  posts" sim.txt; do sleep 1; kill -0 $S || break; done
date +%T >> kills.txt
for round in 1 2; do
 for i in 1 2 3; do sleep 12; kill -0 $S 2>/dev/null || break 2; echo "$(date +%T) kill -9 node $i" >> kills.txt; kill -9 $(cat node$i.pid); sleep 4; node $i
  sleep 12; kill -0 $S 2>/dev/null || break 2; echo "$(date +%T) kill -9 nats $i" >> kills.txt; kill -9 $(cat nats$i.pid); sleep 4; nats $i; done
done
wait $S; echo "simulate: exit $?"
sleep 5; for i in 1 2 3; do curl -s -H "Authorization: Bearer $ROOST_KEY" http://127.0.0.1:1899$i/v1/cluster; echo; done
kill $(cat node?.pid) ; sleep 2; kill $(cat nats?.pid)
tail -50 sim.txt; cat kills.txt
