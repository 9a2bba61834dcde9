# Interleaved redis-benchmark of two builds of roost and redis-server:
# BASE=roost-before NEW=roost-now [DUR=always] [TESTS='get:1 set:16'] sh redis.sh
# Each line: test, pipeline, requests per second of BASE, NEW, redis-server.
set -u
D=$(mktemp -d)/data; mkdir -p $D
start() { "$1" serve --open --listen 127.0.0.1:0 --redis-listen 127.0.0.1:$2 --durability $4 --fsync-interval 1s --data $D/$3 > $D/$3.out 2>$D/$3.err & }
start $BASE 7001 base ${DUR:-interval}; start $NEW 7002 new ${DUR:-interval}
AOF=everysec; [ "${DUR:-interval}" = always ] && AOF=always
(cd $D && redis-server --port 7003 --save '' --appendonly yes --appendfsync $AOF > $D/redis.out 2>&1 &) 
sleep 2
for p in 7001 7002 7003; do redis-benchmark -p $p -c 100 -d 32 -r 100000 -n 200000 -P 16 -t set -q >/dev/null 2>&1; done
for round in 1 2 3 4 5; do
 for t in ${TESTS:-get:16 get:1 set:16 set:1}; do
  op=${t%:*}; P=${t#*:}; n=$((P==16?600000:120000))
  line="$op P=$P"
  for p in 7001 7002 7003; do
    r=$(redis-benchmark -p $p -c 100 -d 32 -r 100000 -n $n -P $P -t $op -q 2>/dev/null | tr '\r' '\n' | grep -oE "[0-9.]+ requests per second" | tail -1 | cut -d' ' -f1)
    line="$line $r"
  done
  echo "$line"
 done
done
pkill -f "$D/" ; pkill -f "redis-server.*7003"; 
