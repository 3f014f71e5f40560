// The real program on a free port, with a store of its own.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const ADMIN_TOKEN = "a-token-for-tests-only";

const BINARY = process.env.AISEKI_BIN ?? join(ROOT, "target/debug/aiseki");
const START_MS = 20_000;

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
// A test that fails leaves no process behind.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export class Program {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;
  #directory = mkdtempSync(join(tmpdir(), "aiseki-page-"));
  #port = 0;
  #log = "";

  /** @param {Record<string, string>} settings by the name of their variable, without `AISEKI_` */
  constructor(settings = {}) {
    this.settings = settings;
  }

  /** @param {Record<string, string>} [settings] */
  static async start(settings) {
    const program = new Program(settings);
    await program.start();
    return program;
  }

  /** Where it is, with its base path. */
  get url() {
    const base = (this.settings.BASE_PATH ?? "/").replace(/\/*$/, "/");
    return `http://127.0.0.1:${this.#port}${base}`;
  }

  get log() {
    return this.#log;
  }

  async start() {
    /** @type {Record<string, string>} */
    const env = {
      PATH: process.env.PATH ?? "",
      AISEKI_LISTEN: `127.0.0.1:${this.#port}`,
      AISEKI_DATA_DIR: join(this.#directory, "data"),
      AISEKI_ADMIN_TOKEN: ADMIN_TOKEN,
      AISEKI_LOG: "info",
    };
    for (const [name, value] of Object.entries(this.settings)) env[`AISEKI_${name}`] = value;
    const child = spawn(BINARY, ["serve"], { env, cwd: this.#directory, stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no start: ${this.#log}`)), START_MS);
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`it ended: ${this.#log}`)));
      child.stderr?.on("data", (data) => {
        this.#log += data;
        const found = /listening on http:\/\/[^:]+:(\d+)/.exec(this.#log.slice(-4000));
        if (!found) return;
        clearTimeout(late);
        this.#port = Number(found[1]);
        resolve(undefined);
      });
    });
    this.#log = "";
  }

  /** As `kill -9` does. */
  async kill() {
    const child = this.#child;
    if (!child || !running.has(child)) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async end() {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /**
   * Something that an operator does.
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @returns {Promise<any>}
   */
  async operator(method, path, body) {
    const response = await fetch(new URL(path, this.url), {
      method,
      headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? undefined : response.json();
  }
}
