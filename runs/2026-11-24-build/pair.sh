# pair.sh LABEL BIN: processor time at a fixed rate, all in memory
L=$1; B=$2
$B serve --data ./d10 --listen 127.0.0.1:8312 --open > serve10.log 2>&1 & P=$!
for i in $(seq 400); do curl -fs localhost:8312/readyz >/dev/null && break; sleep 0.05; done
timeout 100 ./roost0 simulate --loaded --plain --users 20000 --target http://localhost:8312 --load light --rate 12000 --day off --duration 12s > pair-$L.log 2>&1
echo "$L $(grep 'server used' pair-$L.log) $(grep -E 'home reads  ' pair-$L.log | tail -1 | cut -c1-100)"
kill -9 $P; wait 2>/dev/null
