// The sample as a child process, and a proxy as gateways put it in front of jobs.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const TARGET = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");

const SOURCE = join(ROOT, "sample/memory-leak/src/leak.rs");

export const PROFILER = "/api/v1/profiler/memray";
export const PICTURES = join(TARGET, "e2e");

/** Starts the sample, recording, on a free port; resolves once it answers. */
export async function startService(environment = {}) {
  const directory = mkdtempSync(join(tmpdir(), "heapray-e2e-"));
  const port = await freePort();
  const inherited = Object.entries(process.env).filter(([name]) => !/^(MEMRAY|JOB)_/.test(name));
  const child = spawn(join(TARGET, "release/memory-leak"), {
    argv0: "memory-leak",
    env: {
      ...Object.fromEntries(inherited),
      PORT: String(port),
      MEMRAY_PROFILER: "true",
      MEMRAY_PROFILER_DIR: directory,
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (data) => (output += data));
  child.stderr.on("data", (data) => (output += data));
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const origin = `http://127.0.0.1:${port}`;
  await untilLive(origin, child, () => output);
  return {
    origin,
    port,
    async perform(times) {
      for (let call = 0; call < times; call++) {
        const answer = await fetch(`${origin}/api/v1/perform`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: "{}",
        });
        if (!answer.ok) throw new Error(`perform answered ${answer.status}`);
      }
    },
    async stop() {
      child.kill("SIGKILL");
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function untilLive(origin, child, output) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the sample ended:\n${output()}`);
    const answer = await fetch(`${origin}/live`).catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > deadline) throw new Error(`the sample did not come up:\n${output()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** A proxy that serves `prefix` + path by asking the service for path, and everything else with 404. */
export function startProxy(prefix, port) {
  const proxy = createServer((incoming, outgoing) => {
    if (!incoming.url.startsWith(`${prefix}/`)) {
      outgoing.writeHead(404).end("not proxied");
      return;
    }
    const path = incoming.url.slice(prefix.length);
    const onward = request(
      { host: "127.0.0.1", port, path, method: incoming.method, headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.writeHead(502).end());
    incoming.pipe(onward);
  });
  return new Promise((resolve) => {
    proxy.listen(0, "127.0.0.1", () =>
      resolve({
        origin: `http://127.0.0.1:${proxy.address().port}`,
        stop: () => new Promise((done) => proxy.close(done).closeAllConnections()),
      }),
    );
  });
}

/** The number of the sample's line that asks for the leaked memory. */
export function leakingLine() {
  const lines = readFileSync(SOURCE, "utf8").split("\n");
  return lines.findIndex((line) => line.includes("vec!") && line.includes("1_000_000")) + 1;
}
