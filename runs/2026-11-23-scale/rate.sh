# rate2.sh BIN LABEL RATE [flags]: processor time of the loaded million at a fixed rate
B=$1; L=$2; R=$3; shift 3
$B serve --data ./m/d --listen 127.0.0.1:8311 --open "$@" > m/serve.log 2>&1 & P=$!
for i in $(seq 400); do curl -fs localhost:8311/readyz >/dev/null && break; sleep 0.05; done
sleep 8
timeout 200 ./roost-now simulate --loaded --plain --users 1000000 --target http://localhost:8311 --load light --rate $R --day off --duration 15s > m/rate-$L.log 2>&1
grep -E "the server used|home reads  " m/rate-$L.log | tail -2 | sed "s/^/$L /"
kill -9 $P; wait 2>/dev/null
