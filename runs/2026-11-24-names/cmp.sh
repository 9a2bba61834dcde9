# cmp.sh LABEL BIN RATE SECONDS
L=$1; B=$2; R=$3; D=$4; shift 4
$B serve --data ./d --listen 127.0.0.1:8311 --open "$@" > serve.log 2>&1 & P=$!
for i in $(seq 400); do curl -fs localhost:8311/readyz >/dev/null && break; sleep 0.05; done
w=0; t0=$(date +%s.%N)
for i in $(seq 120); do
  f=$(grep -l warm-posts /proc/$P/task/*/comm 2>/dev/null | head -1)
  [ -z "$f" ] && break
  w=$(awk '{print $14+$15}' $(dirname $f)/stat 2>/dev/null || echo $w)
  sleep 0.2
done
t1=$(date +%s.%N)
rss=$(awk '/VmRSS/{print int($2/1024)}' /proc/$P/status)
timeout 200 ./roost0 simulate --loaded --plain --users 1000000 --target http://localhost:8311 --load light --rate $R --day off --duration ${D}s > rate-$L.log 2>&1
echo "$L warm $(echo "$w/100" | bc -l | cut -c1-5) s CPU in $(echo "$t1-$t0" | bc -l | cut -c1-5) s, rss $rss MB; $(grep 'server used' rate-$L.log); $(grep -E '^ *home reads|home reads  ' rate-$L.log | tail -1 | cut -c1-140)"
kill -9 $P; wait 2>/dev/null
