// What an application does with ioredis: `client.js PORT`. Prints `done` if all is as expected.

const assert = require("node:assert");
const Redis = require("ioredis");

async function main(port) {
  const redis = new Redis({ port });
  await redis.flushall();
  assert.equal(await redis.ping(), "PONG");

  assert.equal(await redis.set("draft", "dear", "EX", 100), "OK");
  assert.equal(await redis.get("draft"), "dear");
  const ttl = await redis.ttl("draft");
  assert(ttl > 0 && ttl <= 100);
  assert.equal(await redis.set("draft", "x", "NX"), null);
  assert.deepEqual(await redis.mget("draft", "none"), ["dear", null]);

  const pipeline = redis.pipeline();
  for (let number = 0; number < 10_000; number++) {
    pipeline.set(`key:${number}`, number);
  }
  const replies = await pipeline.exec();
  assert(replies.every(([error, reply]) => error === null && reply === "OK"));

  const found = new Set();
  for await (const keys of redis.scanStream({ match: "key:*", count: 500 })) {
    keys.forEach((key) => found.add(key));
  }
  assert.equal(found.size, 10_000);

  assert.deepEqual(await redis.multi().set("n", 1).incr("n").get("n").exec(), [
    [null, "OK"],
    [null, 2],
    [null, "2"],
  ]);
  const other = new Redis({ port });
  await redis.watch("n");
  await other.set("n", 7);
  assert.equal(await redis.multi().set("n", 8).exec(), null);
  assert.equal(await other.get("n"), "7");

  await assert.rejects(redis.lpush("list", 1), /unknown command/);
  redis.disconnect();
  other.disconnect();
  console.log("done");
}

main(Number(process.argv[2]));
