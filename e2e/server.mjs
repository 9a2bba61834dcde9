// The real program on a temporary directory, and a simple client of its API. Servers and directories are removed at the
// end of the process.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
/** Path of the program under test. */
export const binary = process.env.ROOST_BINARY ?? join(target, "debug", "roost");

const children = new Set();
const folders = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Finds a free port: a restarted server must keep its port. */
function freePort() {
  return new Promise((found) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => found(port));
    });
  });
}

/** Runs the program. Calls `line` with each line of its output. */
export function run(args, line, env = {}) {
  const child = spawn(binary, args, { env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  child.on("exit", () => children.delete(child));
  let rest = "";
  child.stdout.on("data", (bytes) => {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop();
    lines.forEach((text) => line?.(text));
  });
  return child;
}

export class Server {
  /** Starts a server, in open mode without a key. `secure` selects https with a self-signed certificate. */
  static async start({ key = null, durability = "never", secure = false, settings = [] } = {}) {
    const server = new Server();
    server.data = mkdtempSync(join(tmpdir(), "roost-e2e-"));
    folders.add(server.data);
    server.key = key;
    server.port = await freePort();
    server.url = `${secure ? "https" : "http"}://127.0.0.1:${server.port}`;
    server.durability = durability;
    server.settings = secure ? ["--tls-self-signed", ...settings] : settings;
    await server.up();
    return server;
  }

  /** Starts the server process on the same address and data as before. */
  up() {
    const args = ["serve", "--data", this.data, "--listen", `127.0.0.1:${this.port}`, "--durability", this.durability];
    if (!this.key) args.push("--open");
    args.push(...this.settings);
    const assets = process.env.ROOST_E2E_ASSETS;
    if (assets) args.push("--web-assets", assets);
    return new Promise((serves, failed) => {
      const env = { ROOST_LOG: "warn", ...(this.key ? { ROOST_KEY: this.key } : {}) };
      this.child = run(args, (text) => { if (text.startsWith("roost serves")) serves(); }, env);
      this.child.on("error", failed);
      this.child.on("exit", (code) => failed(new Error(`the server ended with ${code}`)));
    });
  }

  /** Kills the server process, like a crash. */
  kill() {
    return new Promise((gone) => {
      this.child.on("exit", gone);
      this.child.kill("SIGKILL");
    });
  }

  async stop() {
    await this.kill();
    rmSync(this.data, { recursive: true, force: true });
    folders.delete(this.data);
  }

  /** Runs a command of `roost account` on the server's data. Returns its output. */
  account(...args) {
    return new Promise((done, failed) => {
      const lines = [];
      const child = run(["account", ...args, "--data", this.data], (line) => lines.push(line));
      child.on("close", (code) => (code === 0 ? done(lines.join("\n").trim()) : failed(new Error(`roost account ${args[0]} ended with ${code}`))));
    });
  }

  /** Sends a request. Returns the JSON of the response. */
  async ask(method, path, json, headers = {}) {
    const body = json === undefined || typeof json === "string" ? json : JSON.stringify(json);
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const secret = this.key ? { Authorization: `Bearer ${this.key}` } : {};
    const answer = await fetch(this.url + path, { method, body, headers: { ...type, ...secret, ...headers } });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.status === 204 ? null : answer.json();
  }

  register(handle, name = "", bio = "") {
    return this.ask("POST", "/v1/users", { handle, name, bio });
  }

  follow(user, other) {
    return this.ask("PUT", `/v1/users/@${user}/following/@${other}`);
  }

  befriend(user, other) {
    return this.ask("PUT", `/v1/users/@${user}/friends/@${other}`);
  }

  /** Edits a post. */
  edit({ id, author }, text) {
    return this.ask("PATCH", `/v1/users/${author.id}/posts/${id}`, { text });
  }

  /** Deletes a post. */
  remove({ id, author }) {
    return this.ask("DELETE", `/v1/users/${author.id}/posts/${id}`);
  }

  post(user, text) {
    return this.ask("POST", `/v1/users/@${user}/posts`, { text });
  }

  /** Sets a key of a bucket, with a TTL in seconds if given. */
  async keep(bucket, key, value, ttl) {
    const path = `/v1/buckets/${bucket}/keys/${encodeURIComponent(key)}${ttl ? `?ttl_s=${ttl}` : ""}`;
    const secret = this.key ? { Authorization: `Bearer ${this.key}` } : {};
    const answer = await fetch(this.url + path, { method: "PUT", body: value, headers: secret });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }

  postStory(user, text, ttl_s) {
    return this.ask("POST", `/v1/users/@${user}/stories`, { text, ttl_s });
  }
}
