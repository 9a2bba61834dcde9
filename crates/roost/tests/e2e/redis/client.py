"""Uses redis-py as an application does: `client.py PORT`. Prints `done` if all results are as expected."""

import sys
import threading

import redis

port = int(sys.argv[1])

for protocol in (2, 3):
    client = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    client.flushall()
    assert client.ping()

    assert client.set("draft", "dear", ex=100)
    assert client.get("draft") == "dear"
    assert 0 < client.ttl("draft") <= 100
    assert client.set("draft", "x", nx=True) is None
    assert client.expire("draft", 200, gt=True)
    assert client.persist("draft") and client.ttl("draft") == -1
    assert client.incr("count", 5) == 5 and client.incrbyfloat("count", 0.5) == 5.5
    assert client.mget("draft", "none", "count") == ["dear", None, "5.5"]
    assert client.copy("draft", "copy") and client.getdel("copy") == "dear"
    raw = redis.Redis(port=port, protocol=protocol)
    assert raw.restore("restored", 0, raw.dump("draft")) == b"OK"
    assert client.get("restored") == "dear"

    with client.pipeline(transaction=False) as pipe:
        for number in range(10_000):
            pipe.set(f"key:{number}", number)
        assert all(pipe.execute())
    assert len(set(client.scan_iter(match="key:*", count=500))) == 10_000
    assert client.dbsize() == 10_003

    def add_up():
        own = redis.Redis(port=port, protocol=protocol, decode_responses=True)

        def step(pipe):
            now = int(pipe.get("sum") or 0)
            pipe.multi()
            pipe.set("sum", now + 1)

        for _ in range(25):
            own.transaction(step, "sum")

    threads = [threading.Thread(target=add_up) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert client.get("sum") == "100"

    try:
        client.lpush("list", 1)
        raise AssertionError("lists are not supported")
    except redis.ResponseError as error:
        assert "unknown command" in str(error), error
    assert client.info()["redis_version"] and client.client_list()
    assert client.execute_command("BUCKET", "CREATE", f"made-by-{protocol}") == 1
    client.close()

print("done")
