// What the page does when the server is slow, gone, locked or full; the dashboard; and what keeps the page safe and quick.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choose, DEFAULT_MODEL, eventually, Proxy, send, Server, SLOWDOWN, startBrowser, stopBrowser, violations, waitForAnswer, Watched } from "./harness";

const LONG = "Tell me a very long story about the sea.";
let server: Server;

beforeAll(async () => {
  await startBrowser();
  server = await Server.start(["--temp", "0"]);
});
afterAll(async () => {
  await stopBrowser();
  await server.stop();
});

// A request that runs until it is cut.
function occupy(url: string, fields = {}): { end: () => void; begun: Promise<unknown> } {
  const abort = new AbortController();
  const body = JSON.stringify({ prompt: LONG, n_predict: -1, ignore_eos: true, stream: true, ...fields });
  const begun = fetch(`${url}completion`, { method: "POST", body, signal: abort.signal }).then((response) => response.body!.getReader().read());
  begun.catch(() => {});
  return { end: () => abort.abort(), begun };
}

describe("trouble", () => {
  it("survives a server that goes and comes back", async () => {
    let mortal = await Server.start(["--temp", "0"]);
    const watched = await Watched.open(mortal.url);
    const { page } = watched;
    await mortal.stop("SIGKILL");
    await send(page, "Hello?");
    await page.getByText("The server does not answer.").waitFor();
    await page.getByText("The server could not be reached.").waitFor();
    mortal = await Server.start(["--temp", "0"], { port: mortal.port });
    await page.locator('.server[data-state="ready"]').waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await waitForAnswer(page);
    await watched.close();
    await mortal.stop();
  });

  it("asks for a key, says if it is wrong, and remembers it for the tab only", async () => {
    const locked = await Server.start(["--api-key", "open-sesame", "--temp", "0"]);
    const watched = await Watched.open(locked.url);
    const { page } = watched;
    await page.getByLabel("API key").fill("wrong");
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.getByText("The server did not accept this key.").waitFor();
    await page.getByLabel("API key").fill("open-sesame");
    await page.getByRole("button", { name: "Use this key" }).click();
    await page.locator("dialog[open]").waitFor({ state: "detached" });
    await send(page, "Hello?");
    await waitForAnswer(page);
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.locator(".tile").first().waitFor();
    await page.reload();
    await page.locator(".tile").first().waitFor();
    expect(await page.evaluate(() => localStorage.getItem("outrider-key"))).toBeNull();
    await page.getByRole("link", { name: "Prometheus metrics" }).click();
    await page.getByRole("dialog").getByText(/^llamacpp:tokens_predicted_total \d+$/m).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    expect(watched.context.pages()).toHaveLength(1); // no tab that says 401
    for (const path of ["props", "live", "metrics", "v1/models"]) expect((await fetch(locked.url + path)).status, path).toBe(401);
    expect((await fetch(locked.url, { headers: { Accept: "*/*" } })).status).toBe(401);
    await watched.close();
    await locked.stop();
  });

  it("says when the queue is full, and can try again", async () => {
    const narrow = await Server.start(["-np", "1", "-c", "4096", "--queue", "0", "--temp", "0"]);
    const watched = await Watched.open(narrow.url);
    const { page } = watched;
    await choose(page, { "Longest answer": "8" });
    const hog = occupy(narrow.url);
    await hog.begun;
    await send(page, "Hello?");
    await page.getByText(/The server is busy and its queue is full\. Try again in \d+ seconds?\./).waitFor();
    hog.end();
    await eventually(() => narrow.idle(), "the slot to be free");
    await page.getByRole("button", { name: "Try again" }).click();
    await waitForAnswer(page);
    await watched.close();
    await narrow.stop();
  });

  it("says what an answer waits for: its turn, and then its prompt", async () => {
    const narrow = await Server.start(["-np", "1", "-c", "4096", "--temp", "0", "--spec", "none", "-ub", "64", "-b", "64"], { model: DEFAULT_MODEL });
    const watched = await Watched.open(narrow.url);
    const { page } = watched;
    await choose(page, { "Longest answer": "8" });
    const hog = occupy(narrow.url);
    await hog.begun;
    await send(page, "It goes on and on and on. ".repeat(90));
    await page.getByText("Waiting in the queue: the slot is busy…").waitFor();
    hog.end();
    await page.getByText(/^Reading the prompt: [\d,]+ of [\d,]+ tokens…$/).waitFor();
    await waitForAnswer(page);
    await watched.close();
    await narrow.stop();
  });

  it("notices that another server has taken the place, and forgets drafters that it does not have", async () => {
    let server = await Server.start(["--temp", "0", "--spec", "suffix", "--spec", "ngram-map-k", "--alias", "first"]);
    const watched = await Watched.open(server.url);
    const { page } = watched;
    await choose(page, { "Longest answer": "8" });
    await page.getByLabel("Speculation").selectOption("pick drafters");
    await page.getByRole("checkbox", { name: "ngram-map-k" }).uncheck();
    expect(await page.getByRole("checkbox", { name: "suffix" }).isChecked()).toBe(true);
    await send(page, "Hello?");
    await waitForAnswer(page);
    await server.stop("SIGKILL");
    await send(page, "Hello again?");
    await page.getByText("The server does not answer.").waitFor();
    server = await Server.start(["--temp", "0", "--spec", "ngram-map-k", "--alias", "second"], { port: server.port });
    await page.getByText(/^The server was replaced: second answers now/).waitFor();
    await page.getByText("This server has no drafter suffix, so it chooses drafters by itself again.").waitFor();
    expect(await page.getByLabel("Speculation").inputValue()).toBe("auto");
    await page.getByRole("button", { name: "Try again" }).click();
    await waitForAnswer(page);
    // The first answer came from the other model, which the proof does not pass over.
    await page.getByRole("button", { name: "Same seed, same text?" }).first().click();
    await page.locator('.proof[data-state="failed"]').waitFor();
    await server.stop("SIGKILL");
    // Replaced between two questions: an answer names its model.
    server = await Server.start(["--temp", "0", "--alias", "third"], { port: server.port });
    await send(page, "And who are you?");
    await page.getByText(/^The server was replaced: third answers now/).waitFor();
    await watched.close();
    await server.stop();
  });

  it("says so when a part of the page cannot be loaded", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    await page.route("**/page/dashboard.js", (route) => route.abort());
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.getByText("A part of the page could not be loaded.").waitFor();
    await page.unroute("**/page/dashboard.js");
    await page.getByRole("button", { name: "Load the page again" }).click();
    await page.locator(".tile").first().waitFor();
    await watched.close();
  });

  it("says when the context is full, and when a question does not fit", async () => {
    const short = await Server.start(["-np", "1", "-c", "256", "--temp", "0"]);
    const watched = await Watched.open(short.url);
    const { page } = watched;
    await choose(page, { "Repeat penalty": "1.3", "Longest answer": "4000" }); // so that the model does not end its answer early
    await send(page, `${LONG} ${"It goes on and on and on. ".repeat(24)}`);
    await page.getByText("The context of 256 tokens is full.").waitFor();
    await send(page, "More. ".repeat(400));
    await page.locator('article.assistant[data-state="failed"] .ending').waitFor();
    expect(await page.locator(".ending").last().innerText()).toMatch(/256|context/);
    await watched.close();
    await short.stop();
  });

  it("keeps what had arrived when the connection is cut in the middle", async () => {
    const proxy = await Proxy.start(server.port);
    const watched = await Watched.open(proxy.url);
    const { page } = watched;
    await choose(page, { "Longest answer": "3000", "Repeat penalty": "1.2" });
    await send(page, LONG);
    await page.locator('article.assistant[data-state="streaming"] .markdown').waitFor();
    proxy.cut();
    await page.getByText("The connection was cut before the answer was complete.").waitFor();
    expect((await waitForAnswer(page, "failed")).length).toBeGreaterThan(0);
    await page.locator('.server[data-state="ready"]').waitFor();
    await watched.close();
    proxy.stop();
  });
});

describe("dashboard", () => {
  it("shows the numbers of /metrics, and they move", async () => {
    const watched = await Watched.open(`${server.url}#/dashboard`);
    const { page } = watched;
    const tile = (name: string) => page.locator(`[data-metric="${name}"] dd`).innerText();
    await page.locator(".tile").first().waitFor();
    const before = (await server.metrics()).get("llamacpp:tokens_predicted_total")!;
    const busy = occupy(server.url, { n_predict: 1500 });
    await busy.begun;
    await eventually(async () => (await tile("llamacpp:requests_processing")) === "1", "the running request to be shown");
    await eventually(async () => Number(await tile("speed")) > 0, "a speed to be shown");
    await page.getByText("generating").waitFor();
    busy.end();
    await eventually(async () => (await tile("llamacpp:requests_processing")) === "0", "the end of the request to be shown");
    const metrics = await server.metrics();
    expect(metrics.get("llamacpp:tokens_predicted_total")).toBeGreaterThan(before);
    for (const name of ["llamacpp:tokens_predicted_total", "llamacpp:n_decode_total", "llamacpp:requests_deferred"]) {
      await eventually(async () => (await tile(name)) === metrics.get(name)!.toLocaleString("en"), `${name} as in /metrics`);
    }
    for (const title of ["Tokens per second", "Acceptance by drafter", "Cost of a step", "Rows per step"]) expect(await page.getByRole("img", { name: title }).count(), title).toBe(1);
    expect(await page.locator(".facts").innerText()).toMatch(/Same request, same text\s+yes, in any batch\s+because\s+each draw depends on nothing but seed, position and logits\s+because\s+kernels/);
    // What the pictures show, for those who do not see them.
    const speed = page.getByRole("region", { name: "Tokens per second" });
    expect(await speed.getByRole("img").getAttribute("aria-label")).toMatch(/^Tokens per second: Tokens per second [\d.,]+ now, between [\d.,]+ and [\d.,]+$/);
    expect(await page.getByRole("img", { name: "Rows per step" }).getAttribute("aria-label")).toMatch(/^Rows per step: 1: [\d,]+, /);
    expect(await speed.locator("table").count()).toBe(0);
    await speed.getByText("As a table").click();
    await speed.locator("tbody tr").nth(1).waitFor();
    expect(await speed.locator("tbody tr").last().innerText()).toMatch(/^0\s+[\d.,]+$/);
    await watched.close();
  });

  it("lets only so many watch, and goes on when the stream was cut", async () => {
    const watchers = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const abort = new AbortController();
        await (await fetch(`${server.url}live`, { signal: abort.signal })).body!.getReader().read();
        return abort;
      }),
    );
    expect((await fetch(`${server.url}live`)).status).toBe(429);
    for (const abort of watchers) abort.abort();
    await eventually(async () => {
      const abort = new AbortController();
      const { status } = await fetch(`${server.url}live`, { signal: abort.signal });
      abort.abort();
      return status === 200;
    }, "places to be free again");
    const proxy = await Proxy.start(server.port);
    const watched = await Watched.open(`${proxy.url}#/dashboard`);
    await watched.page.locator(".tile").first().waitFor();
    proxy.cut();
    await watched.page.getByText("The stream of numbers was cut.").waitFor();
    await watched.page.getByText("The stream of numbers was cut.").waitFor({ state: "detached" });
    await watched.close();
    proxy.stop();
  });
});

describe("images", () => {
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

  it("are refused where the server sees none", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    expect(await page.getByRole("button", { name: "Add a text file" }).count()).toBe(1);
    await page.locator('.composer input[type="file"]').setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: png });
    await page.getByText("dot.png is not a text file. This server reads no images or other files.").waitFor();
    await watched.close();
  });

  it("are sent as parts of the message where the server sees them", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    // A server with eyes, as the page knows it: what /props says, and what is sent.
    await page.route("**/props", async (route) => {
      const props = await (await route.fetch()).json();
      await route.fulfill({ json: { ...props, modalities: { vision: true } } });
    });
    let sent: any;
    await page.route("**/v1/chat/completions", async (route) => {
      sent = route.request().postDataJSON();
      await route.fulfill({ contentType: "text/event-stream", body: 'data: {"choices":[{"delta":{"content":"A dot."},"finish_reason":"stop"}],"provenance":[{"text":"A dot.","drafter":null}]}\n\ndata: [DONE]\n\n' });
    });
    await page.reload();
    await page.getByRole("button", { name: "Add an image or a text file" }).waitFor();
    await page.locator('.composer input[type="file"]').setInputFiles([
      { name: "dot.png", mimeType: "image/png", buffer: png },
      { name: "not.png", mimeType: "image/png", buffer: Buffer.from("not an image") },
    ]);
    await page.getByText("not.png is neither a text file nor an image that this browser can read.").waitFor();
    expect(await page.getByRole("img", { name: "dot.png" }).count()).toBe(1);
    await send(page, "What is this?");
    await waitForAnswer(page);
    const url = `data:image/png;base64,${png.toString("base64")}`;
    expect(sent.messages).toEqual([{ role: "user", content: [{ type: "image_url", image_url: { url } }, { type: "text", text: "What is this?" }] }]);
    expect(await page.locator("article.user img").getAttribute("src")).toBe(url);
    await send(page, "And now?");
    await eventually(async () => (await page.locator("article.assistant").count()) === 2, "the second answer");
    expect(sent.messages.map((message: any) => typeof message.content)).toEqual(["object", "string", "string"]);
    await watched.close();
  });
});

describe("security", () => {
  it("serves the page compressed, with a strict policy, and again only if it changed", async () => {
    const response = await fetch(server.url, { headers: { Accept: "text/html", "Accept-Encoding": "gzip" } });
    const policy = response.headers.get("Content-Security-Policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|http|\*/);
    expect(response.headers.get("Content-Encoding")).toBe("gzip");
    const etag = response.headers.get("ETag")!;
    const again = await fetch(server.url, { headers: { Accept: "text/html", "If-None-Match": etag } });
    expect(again.status).toBe(304);
    const plain = await fetch(server.url, { headers: { Accept: "text/html", "Accept-Encoding": "identity" } });
    expect(plain.headers.get("Content-Encoding")).toBeNull();
    expect(await plain.text()).toBe(await response.text());
  });

  it("tells programs what there is, and shows no page with --no-webui", async () => {
    expect(await (await fetch(server.url)).text()).toMatch(/^Outrider is running\.\n/);
    const bare = await Server.start(["--no-webui"]);
    const response = await fetch(bare.url, { headers: { Accept: "text/html" } });
    expect(response.headers.get("Content-Type")).toMatch(/^text\/plain/);
    expect((await fetch(`${bare.url}page/app.js`)).status).toBe(404);
    await bare.stop();
  });

  it("shows hostile text without running any of it", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    const outside: string[] = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(server.url)) outside.push(request.url());
    });
    const hostile = ["<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", "[x](javascript:window.pwned=1)", "![x](https://example.org/leak.png)", "<svg onload=window.pwned=1>", "a\u202Eb"].join("\n\n");
    await importMessages(page, [hostile, hostile]);
    await page.locator("article.assistant .markdown").waitFor();
    expect(await page.locator("article a").count()).toBe(2); // what was an image is a link to it
    for (const link of await page.locator("article a").all()) expect(await link.getAttribute("href")).toMatch(/^https:/);
    await page.getByLabel("Origins").check();
    expect(await page.evaluate(() => (window as { pwned?: unknown }).pwned)).toBeUndefined();
    expect(await page.locator("article").first().innerText()).toContain("⟨U+202E⟩");
    expect(outside).toEqual([]);
    await watched.close();
  });

  it("lets no name turn the direction of the text around it", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    const turned = "\u202Eevil\u2066";
    page.on("dialog", (dialog) => (expect(dialog.message()).not.toContain("\u202E"), void dialog.dismiss()));
    await importMessages(page, ["q", "```js\n" + turned + "\n```"], { title: turned, answer: { toolCalls: [{ name: turned, arguments: turned }], error: turned, state: "failed", reasoning: turned } });
    await page.locator("article.assistant pre").first().waitFor();
    for (const details of await page.locator("article details").all()) await details.evaluate((each) => ((each as HTMLDetailsElement).open = true));
    await page.locator(".conversation-list li").hover();
    await page.getByRole("button", { name: /^Delete/ }).click();
    await page.locator('.composer input[type="file"]').setInputFiles({ name: turned, mimeType: "text/plain", buffer: Buffer.from([0]) });
    await page.locator(".banner").getByText("is not a text file").waitFor();
    // Nowhere in what is shown or read aloud.
    const shown = await page.evaluate(() => document.body.textContent + [...document.querySelectorAll("[aria-label], [title], [alt]")].map((each) => `${each.getAttribute("aria-label")}${each.getAttribute("title")}${each.getAttribute("alt")}`).join());
    expect(shown).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    expect(shown.split("⟨U+202E⟩evil").length).toBeGreaterThan(7);
    await watched.close();
  });
});

// A conversation with these texts, questions and answers in turn, by way of a file.
async function importMessages(page: Page, contents: string[], { title = "Imported", answer = {} } = {}): Promise<void> {
  const messages = contents.map((content, i) => ({ id: `m${i}`, parent: i === 0 ? null : `m${i - 1}`, role: i % 2 === 0 ? "user" : "assistant", content, created: i, updated: i, state: "done", ...(i % 2 === 1 && answer) }));
  const archive = { format: "outrider-conversations", version: 1, conversations: [{ conversation: { title }, messages }] };
  await page.locator('.sidebar input[type="file"]').setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(archive)) });
  await page.locator(".conversation-list a").first().click();
}

// The median time from a key to the frame that shows it, in milliseconds.
async function typingTime(page: Page): Promise<number> {
  await page.getByLabel("Your message").focus();
  await page.evaluate(() => {
    const times: number[] = ((window as any).times = []);
    addEventListener("input", (event) => requestAnimationFrame(() => setTimeout(() => times.push(performance.now() - event.timeStamp))), true);
  });
  for (const key of "the quick brown fox jumps") await page.keyboard.press(key === " " ? "Space" : key);
  await page.waitForFunction(() => (window as any).times.length >= 25);
  const times = (await page.evaluate(() => (window as any).times)) as number[];
  return times.sort((a, b) => a - b)[12]!;
}

describe("speed", () => {
  it("stays quick with 2,000 messages and with a line of a megabyte", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    const texts = Array.from({ length: 2000 }, (_, i) => `Message ${i}: **some** text with \`code\` and\n\n| a | b |\n|---|---|\n| ${i} | 2 |\n`);
    await importMessages(page, texts);
    await page.getByText("Message 1999").waitFor();
    expect(await typingTime(page)).toBeLessThan(50 * SLOWDOWN);
    await page.getByRole("button", { name: "Show 40 earlier messages" }).click();
    await page.getByText("Message 1920:").waitFor();
    await page.getByRole("button", { name: "New conversation" }).click();
    page.on("dialog", (dialog) => void dialog.accept());
    await page.locator(".conversation-list li").hover();
    await page.getByRole("button", { name: /^Delete/ }).click();
    await importMessages(page, ["x".repeat(1_000_000), "y ".repeat(500_000)]);
    await page.getByRole("button", { name: "Show 200,000 more characters" }).first().waitFor();
    expect(await typingTime(page)).toBeLessThan(50 * SLOWDOWN);
    await watched.close();
  });

  it("stays quick with texts that are costly to read as markdown", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    const costly = ["[a](".repeat(4_000), "*a ".repeat(10_000), "1. =\n*".repeat(15_000), "| a | b |\n|---|---|\n" + "| 1 | 2 |\n".repeat(9_000)];
    await importMessages(page, costly.flatMap((text) => [text, `${text}\n\n**bold**`]));
    await page.locator("article.assistant .plain").nth(3).waitFor();
    expect(await page.locator("article .markdown").count()).toBe(0);
    expect(await typingTime(page)).toBeLessThan(50 * SLOWDOWN);
    await watched.close();
  });

  it("paints within 300 ms, and asks the server for nothing while idle", async () => {
    const paints: number[] = [];
    for (let i = 0; i < 5; ++i) {
      const watched = await Watched.open(server.url);
      await watched.page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
      paints.push(await watched.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]!.startTime));
      if (i === 4) {
        const asked: string[] = [];
        await watched.page.waitForLoadState("networkidle");
        watched.page.on("request", (request) => asked.push(request.url()));
        await watched.page.waitForTimeout(500);
        const before = server.cpuSeconds();
        await watched.page.waitForTimeout(2000);
        expect(asked).toEqual([]);
        expect(server.cpuSeconds() - before).toBeLessThan(0.045); // told in hundredths of a second
      }
      await watched.close();
    }
    expect(Math.min(...paints)).toBeLessThan(300);
  });
});

describe("accessible", () => {
  it.each(["light", "dark"] as const)("in all views, %s", async (colorScheme) => {
    const watched = await Watched.open(server.url, { colorScheme });
    const { page } = watched;
    expect(await violations(page), "empty chat").toEqual([]);
    await page.getByLabel("Origins").check();
    await importMessages(page, ["Show me `code`", "Here:\n\n```python\ndef f(): return 1  # one\n```\n\n| a |\n|---|\n| 1 |\n\n- [x] done"]);
    await page.locator("article.assistant pre").waitFor();
    await send(page, "Count to ten, twice.");
    await waitForAnswer(page);
    await page.locator(".token-text").last().focus();
    expect(await violations(page), "origins").toEqual([]);
    await page.getByRole("button", { name: "Film" }).click();
    expect(await violations(page), "film").toEqual([]);
    await page.getByRole("button", { name: "Settings" }).click();
    expect(await violations(page), "settings").toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Tokens", { exact: true }).fill("16");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".verdict").waitFor();
    expect(await violations(page), "compare").toEqual([]);
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.locator(".chart canvas").first().waitFor();
    expect(await violations(page), "dashboard").toEqual([]);
    await watched.close();
  });

  it.each([400, 820, 1280, 3840])("fits a window %i pixels wide", async (width) => {
    const watched = await Watched.open(server.url, { viewport: { width, height: 900 } });
    const { page } = watched;
    for (const view of ["chat", "compare", "dashboard"]) {
      await page.goto(`${server.url}#/${view}`);
      await page.locator(view === "dashboard" ? ".tile" : view === "compare" ? ".compare-form" : ".composer").first().waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(width);
    }
    await watched.close();
  });

  it("can be used by keyboard alone", async () => {
    const watched = await Watched.open(server.url);
    const { page } = watched;
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
    for (let i = 0; i < 30 && (await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))) !== "Your message"; ++i) await page.keyboard.press("Tab");
    await page.keyboard.type("Hello");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("there");
    await page.keyboard.press("Enter");
    await waitForAnswer(page);
    expect(await page.locator("article.user").innerText()).toMatch(/Hello\s+there/);
    await watched.close();
  });
});
