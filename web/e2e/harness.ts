// The real server, a real browser. Set by ./test, with defaults for a run by hand:
//   OUTRIDER_BIN             the binary (build/release/bin/outrider), built with the page
//   OUTRIDER_MODELS_DIR      the in-repo models (models/)
//   OUTRIDER_DEFAULT_MODEL   the model that ./run serves; the small one stands in where it is missing
//   OUTRIDER_PAGE            a folder (dist/) with the page to test instead of the one in the binary, which needs no new binary then
//   OUTRIDER_TEST_SLOWDOWN   how much slower than a release build the binary is; stretches every time limit
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer, connect, type Socket } from "node:net";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { expect } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = process.env.OUTRIDER_BIN ?? resolve(ROOT, "build/release/bin/outrider");
const MODELS = process.env.OUTRIDER_MODELS_DIR ?? resolve(ROOT, "models");
export const SMALL_MODEL = resolve(MODELS, "smollm2-draft-16m.gguf");
export const DEFAULT_MODEL = process.env.OUTRIDER_DEFAULT_MODEL || SMALL_MODEL; // takes half a minute for a long answer
const PAGE = process.env.OUTRIDER_PAGE;
export const SLOWDOWN = Number(process.env.OUTRIDER_TEST_SLOWDOWN ?? 1);
export const LIMIT = 20_000 * SLOWDOWN; // milliseconds; for what takes well under a second on an idle machine

export class Server {
  private constructor(
    private readonly child: ChildProcess,
    readonly port: number,
    private readonly log: string[],
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  static async start(flags: string[] = [], { model = SMALL_MODEL, port = 0 } = {}): Promise<Server> {
    const child = spawn(BINARY, ["serve", "-m", model, "--port", String(port), ...flags], { stdio: ["ignore", "ignore", "pipe"] });
    const log: string[] = [];
    const found = await new Promise<number>((done, fail) => {
      child.stderr!.setEncoding("utf8").on("data", (text: string) => {
        log.push(text);
        const match = /listening on http:\/\/[\w.-]+:(\d+)/.exec(log.join(""));
        if (match) done(Number(match[1]));
      });
      child.on("exit", (code) => fail(new Error(`the server ended with code ${code}:\n${log.join("")}`)));
    });
    child.removeAllListeners("exit");
    return new Server(child, found, log);
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise<number | null>((done) => this.child.on("exit", (code) => done(code)));
    this.child.kill(signal);
    const code = await ended;
    if (signal === "SIGTERM") expect(code, this.log.join("")).toBe(0);
  }

  async metrics(): Promise<Map<string, number>> {
    const text = await (await fetch(`${this.url}metrics`)).text();
    return new Map(text.split("\n").filter((line) => line && !line.startsWith("#")).map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
  }

  async idle(): Promise<boolean> {
    const slots = (await (await fetch(`${this.url}slots`)).json()) as { is_processing: boolean }[];
    return slots.every((slot) => !slot.is_processing);
  }

  // Computing time of all its threads so far, in seconds.
  cpuSeconds(): number {
    const fields = readFileSync(`/proc/${this.child.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }
}

// A proxy before the server whose connections can be cut.
export class Proxy {
  private readonly sockets = new Set<Socket>();
  private constructor(private readonly listener: ReturnType<typeof createServer>) {}

  static async start(target: number): Promise<Proxy> {
    const listener = createServer();
    const proxy = new Proxy(listener);
    listener.on("connection", (client) => {
      const server = connect(target, "127.0.0.1");
      for (const socket of [client, server]) {
        proxy.sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => (proxy.sockets.delete(socket), client.destroy(), server.destroy()));
      }
      client.pipe(server).pipe(client);
    });
    await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as { port: number }).port}/`;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  stop(): void {
    this.listener.close();
    this.cut();
  }
}

let browser: Browser | undefined;

export async function startBrowser(): Promise<void> {
  browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

export async function stopBrowser(): Promise<void> {
  await browser?.close();
}

// The page of another folder, with the binary's policy for it.
async function servePage(context: BrowserContext, url: string): Promise<void> {
  const policy = (await fetch(url, { headers: { Accept: "text/html" } })).headers.get("Content-Security-Policy")!;
  const types: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
  await context.route(/^[^?#]*:\d+\/(page\/[^#]*)?(#.*)?$/, (route) => {
    const path = new URL(route.request().url()).pathname.slice(1) || "index.html";
    const contentType = types[path.split(".").at(-1)!]!;
    return route.fulfill({ body: readFileSync(resolve(PAGE!, path)), contentType, headers: { "Content-Security-Policy": policy } });
  });
}

// Errors in the console, a refused inline script among them, fail the test that collects them; those of the network are
// what some tests are about.
export class Watched {
  readonly errors: string[] = [];
  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async open(url: string, options: BrowserContextOptions = {}): Promise<Watched> {
    const context = await browser!.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(LIMIT);
    // Answers are short unless a test wants a long one.
    await context.addInitScript(() => (localStorage["outrider-settings"] ??= '{"max_tokens":96}'));
    if (PAGE) await servePage(context, url);
    const watched = new Watched(context, await context.newPage());
    watched.watch(watched.page);
    await watched.page.goto(url);
    await watched.page.locator('.server[data-state="ready"]').waitFor();
    return watched;
  }

  async another(url: string): Promise<Page> {
    const page = await this.context.newPage();
    this.watch(page);
    await page.goto(url);
    return page;
  }

  private watch(page: Page): void {
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) this.errors.push(message.text());
    });
  }

  async close(): Promise<void> {
    await this.context.close();
    expect(this.errors).toEqual([]);
  }
}

// A file in a page of its own. Errors in it fail the test that closes it.
export async function openFile(url: string, options: BrowserContextOptions = {}): Promise<{ page: Page; close: () => Promise<void> }> {
  const context = await browser!.newContext({ reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(LIMIT);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(url);
  const close = async () => {
    await context.close();
    expect(errors).toEqual([]);
  };
  return { page, close };
}

// What WCAG AA asks for and the page does not do.
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() => (window as any).axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
  return found.map((each: any) => `${each.id}: ${each.nodes.map((node: any) => node.html).slice(0, 3).join(" | ")}`);
}

// --- What people do

export async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel("Your message").fill(text);
  await page.getByLabel("Your message").press("Enter");
}

export const answers = (page: Page) => page.locator("article.assistant");

export async function waitForAnswer(page: Page, state = "done"): Promise<string> {
  await page.locator(`article.assistant[data-state="${state}"]`).last().waitFor();
  // Not innerText: that is "" for a message that was not drawn yet (content-visibility).
  return (await page.locator("article.assistant").last().locator(".markdown, .plain, .token-text").first().textContent())!;
}

export async function choose(page: Page, values: Record<string, string>): Promise<void> {
  await page.getByRole("button", { name: "Settings" }).click();
  for (const [label, value] of Object.entries(values)) {
    await page.getByRole("dialog").getByLabel(label).fill(value);
    await page.getByRole("dialog").getByLabel(label).blur();
  }
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
}

export async function eventually(condition: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + LIMIT;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited ${LIMIT} ms for ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
