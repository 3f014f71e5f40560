// A scenario: the program, people in a real browser, and what is left when it fails.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { Program, ROOT } from "./program.js";

/** @import { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core" */

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** Whatever is waited for comes much sooner. */
const PATIENCE_MS = 30_000;
const FAILURES = join(ROOT, "target/e2e");

/** @type {Promise<Browser> | undefined} */
let launched;

/** One browser for all scenarios of a file. */
export function browser() {
  launched ??= chromium.launch({
    executablePath: CHROMIUM,
    // Containers run everything as one user, which the sandbox of the browser refuses.
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  return launched;
}

after(async () => (await launched)?.close());

/**
 * @typedef {object} Guest how a person comes
 * @property {"ja-JP" | "en-US"} [locale]
 * @property {BrowserContext} [tabOf] the person whose second tab this is
 * @property {string} [path] below the program's address
 * @property {boolean} [bare] whether the page is not waited for
 */

export class Stage {
  /** @type {BrowserContext[]} */
  #contexts = [];
  /** @type {Page[]} */
  pages = [];
  /** @type {string[]} What the browser complained of. */
  complaints = [];

  /** @param {Program} program */
  constructor(program) {
    this.program = program;
  }

  /**
   * Somebody opens the page.
   * @param {Guest & BrowserContextOptions} [guest]
   * @returns {Promise<Page>}
   */
  async person({ locale = "ja-JP", tabOf, path = "", bare = false, ...options } = {}) {
    const context = tabOf ?? (await this.#context({ locale, ...options }));
    const page = await context.newPage();
    this.pages.push(page);
    page.on("pageerror", (error) => this.complaints.push(`${error}`));
    page.on("console", (message) => {
      // A violation of the policy is a fault of the page; a refused call is not.
      if (/Content Security Policy|Trusted/.test(message.text())) this.complaints.push(message.text());
    });
    await page.goto(this.program.url + path);
    if (!bare) await page.locator("main h1").first().waitFor();
    return page;
  }

  /** @param {BrowserContextOptions} options */
  async #context(options) {
    const context = await (await browser()).newContext({ viewport: { width: 900, height: 760 }, ...options });
    context.setDefaultTimeout(PATIENCE_MS);
    await context.tracing.start({ snapshots: true });
    this.#contexts.push(context);
    return context;
  }

  /** @param {string | undefined} failed the name of what went wrong */
  async end(failed) {
    if (failed) {
      mkdirSync(FAILURES, { recursive: true });
      const name = failed.replace(/\W+/g, "-");
      for (const [i, page] of this.pages.entries()) {
        await page.screenshot({ path: join(FAILURES, `${name}-${i}.png`) }).catch(() => {});
      }
    }
    for (const [i, context] of this.#contexts.entries()) {
      const name = `${failed?.replace(/\W+/g, "-")}-${i}.zip`;
      await context.tracing.stop(failed ? { path: join(FAILURES, name) } : undefined).catch(() => {});
      await context.close();
    }
    await this.program.end();
  }
}

/**
 * A test with a program of its own.
 * @param {string} name
 * @param {(stage: Stage) => Promise<void>} play
 * @param {Record<string, string>} [settings]
 */
export function scenario(name, play, settings) {
  test(name, { timeout: 120_000 }, async () => {
    const stage = new Stage(await Program.start(settings));
    let failed = /** @type {string | undefined} */ (name);
    try {
      await play(stage);
      if (stage.complaints.length > 0) throw new Error(stage.complaints.join("\n"));
      failed = undefined;
    } catch (error) {
      console.error(stage.program.log.slice(-2000));
      throw error;
    } finally {
      await stage.end(failed);
    }
  });
}

/**
 * Which screen is shown.
 * @param {Page} page
 * @param {"topics" | "waiting" | "room" | "ended"} name
 */
export async function sees(page, name) {
  await page.locator(`main[data-screen="${name}"]`).waitFor();
}

/**
 * Chooses a number of people and a topic.
 * @param {Page} page
 * @param {number} size
 * @param {number} [topic] its place in the list
 */
export async function joins(page, size, topic = 0) {
  await page.locator(`input[name="size"][value="${size}"]`).check({ force: true });
  await page.locator(".strip").nth(topic).click();
}

/**
 * Two or more people sit down together.
 * @param {Page[]} pages
 * @param {number} [topic]
 */
export async function meet(pages, topic = 0) {
  for (const page of pages) {
    await joins(page, pages.length, topic);
    // In this order, so that the first of them has the first seat.
    if (page !== pages.at(-1)) await sees(page, "waiting");
  }
  for (const page of pages) {
    await sees(page, "room");
    await page.locator("#composer").waitFor();
    await page.locator(".people li").nth(pages.length - 1).waitFor();
  }
}

/**
 * @param {Page} page
 * @param {string} text
 */
export async function says(page, text) {
  await page.locator("#composer").fill(text);
  await page.locator("#composer").press("Enter");
}

/**
 * The message is there, confirmed and once.
 * @param {Page} page
 * @param {string} text
 */
export async function reads(page, text) {
  const message = page.locator('[role="log"] li .text', { hasText: text });
  await message.first().waitFor();
  const count = await message.count();
  if (count !== 1) throw new Error(`${text} is there ${count} times`);
}

/**
 * All that was said, in order.
 * @param {Page} page
 * @returns {Promise<string[]>}
 */
export function transcript(page) {
  return page.locator('[role="log"] li .text').allTextContents();
}

/**
 * Presses a button that wants to be pressed twice soon after each other, however slow the machine is.
 * @param {import("playwright-core").Locator} button
 */
export async function surely(button) {
  await button.evaluate(async (/** @type {HTMLElement} */ element) => {
    const before = element.textContent;
    element.click();
    while (element.textContent === before) await new Promise((resolve) => setTimeout(resolve));
    element.click();
  });
}

/**
 * Waits until a condition holds that no locator can tell.
 * @param {() => Promise<boolean>} holds
 * @param {string} what
 */
export async function until(holds, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
