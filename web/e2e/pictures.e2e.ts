// The pictures of the README, made with the model that ./run serves and the small draft model. They are written to
// OUTRIDER_PICTURES, or else only made: a picture that cannot be taken any more is a test that fails.
//
//   OUTRIDER_PICTURES=$PWD/docs/page npm --prefix web run e2e -- pictures
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send, Server, SLOWDOWN, SMALL_MODEL, startBrowser, stopBrowser, waitForAnswer, Watched } from "./harness";

const FOLDER = process.env.OUTRIDER_PICTURES;
const MODEL = process.env.OUTRIDER_DEFAULT_MODEL || SMALL_MODEL;
const QUESTION = "List the days of the week with one sentence about each, then list the days again.";
const FRAMES = 30; // of the film: ten seconds
const WATCHED_MS = FOLDER ? 50_000 : 4000; // of the dashboard: its time axes show a minute

let server: Server;

beforeAll(async () => {
  if (FOLDER) mkdirSync(FOLDER, { recursive: true });
  await startBrowser();
  server = await Server.start(["-md", SMALL_MODEL, "--spec-forget", "--temp", "0", "--alias", "SmolLM2-135M-Instruct"], { model: MODEL });
});
afterAll(async () => {
  await stopBrowser();
  await server.stop();
});

async function take(page: Page, name: string): Promise<void> {
  const picture = await page.screenshot({ animations: "disabled", caret: "initial" });
  expect(picture.length).toBeGreaterThan(5_000);
  if (FOLDER) writeFileSync(join(FOLDER, name), picture);
}

async function ask(page: Page): Promise<void> {
  await page.getByLabel("Origins").check();
  await send(page, QUESTION);
  await waitForAnswer(page);
}

// Points at a drafted token for which the model had other ideas too, if there is one: what pays, and is drafted, depends on the machine.
async function pointAtDoubtful(page: Page): Promise<void> {
  const drafted = page.locator('[data-token]:not([data-drafter=""])');
  for (let i = 0; i < Math.min(40, await drafted.count()); ++i) {
    await drafted.nth(i).hover();
    const shares = await page.locator('.detail [role="meter"]').evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("aria-valuenow"))));
    if (shares.filter((share) => share > 0.04).length >= 3) break;
  }
  expect(await page.locator('.detail [role="meter"]').count()).toBeGreaterThan(1);
  // The bars are as long as they say.
  for (const bar of await page.locator('.detail [role="meter"]').all()) {
    const share = Number(await bar.getAttribute("aria-valuenow"));
    const [outer, inner] = await bar.evaluate((each) => [each.getBoundingClientRect(), each.firstElementChild!.getBoundingClientRect()]);
    expect(inner!.width / outer!.width).toBeCloseTo(share, 2);
    expect(inner!.height).toBeCloseTo(outer!.height, 1);
  }
  await page.locator(".detail").scrollIntoViewIfNeeded();
}

async function goTo(page: Page, frame: number): Promise<void> {
  await page.keyboard.press("Home");
  for (let i = 0; i < frame; ++i) await page.keyboard.press("ArrowRight");
}

// The frame from which FRAMES frames show the most drafted tokens, right and wrong.
async function liveliest(page: Page): Promise<number> {
  const frames = Number(await page.locator(".film").getAttribute("data-frames"));
  const drafted: number[] = [];
  await page.keyboard.press("Home");
  for (let i = 0; i < frames; ++i) {
    const [right, wrong] = [await page.locator(".film .new.accepted").count(), await page.locator(".film .new.rejected").count()];
    drafted.push(Math.min(right, 4) + 2 * Math.min(wrong, 3));
    await page.keyboard.press("ArrowRight");
  }
  expect(drafted.some((count) => count > 0)).toBe(true);
  const sumFrom = (from: number) => drafted.slice(from, from + FRAMES).reduce((sum, count) => sum + count, 0);
  const starts = drafted.map((_, i) => i).filter((i) => i === 0 || i + FRAMES <= frames);
  return starts.reduce((best, from) => (sumFrom(from) > sumFrom(best) ? from : best), 0);
}

describe("pictures", () => {
  it("origins, light", async () => {
    const watched = await Watched.open(server.url, { viewport: { width: 1200, height: 1060 } });
    await ask(watched.page);
    await pointAtDoubtful(watched.page);
    await take(watched.page, "origins.png");
    await watched.close();
  });

  it("compare and dashboard, dark", { timeout: 60_000 * SLOWDOWN + 2 * WATCHED_MS }, async () => {
    const watched = await Watched.open(`${server.url}#/compare`, { viewport: { width: 1200, height: 820 }, colorScheme: "dark" });
    const { page } = watched;
    await page.getByLabel("Question").fill(QUESTION);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".verdict.good").waitFor();
    await take(page, "compare-dark.png");
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.locator(".chart canvas").first().waitFor();
    const abort = new AbortController();
    const busy = ["Tell me about the sea.", "Count to fifty, twice.", "Write a poem, then write it again."].map(async (content, i) => {
      await new Promise((done) => setTimeout(done, (i * WATCHED_MS) / 5));
      while (!abort.signal.aborted) {
        const body = JSON.stringify({ messages: [{ role: "user", content }], max_tokens: 200, ignore_eos: true });
        await fetch(`${server.url}v1/chat/completions`, { method: "POST", body, signal: abort.signal }).then((response) => response.text());
      }
    });
    await page.setViewportSize({ width: 1200, height: 1120 });
    await page.waitForTimeout(WATCHED_MS);
    await take(page, "dashboard-dark.png");
    abort.abort();
    await Promise.allSettled(busy);
    await watched.close();
  });

  it("on a phone", { timeout: 60_000 * SLOWDOWN }, async () => {
    const watched = await Watched.open(server.url, { viewport: { width: 400, height: 800 } });
    await ask(watched.page);
    await take(watched.page, "phone.png");
    await watched.close();
  });

  it("the film", { timeout: 60_000 * SLOWDOWN }, async () => {
    const watched = await Watched.open(server.url, { viewport: { width: 720, height: 700 } });
    const { page } = watched;
    await ask(page);
    await page.getByRole("button", { name: "Film" }).click();
    // All frames have one size, and show the end of a text that is longer.
    const box = page.locator(".film .token-text");
    await box.evaluate((each) => Object.assign(each.style, { height: "230px", overflow: "hidden" }));
    await page.getByLabel("Place in the film").focus();
    await goTo(page, await liveliest(page));
    await page.locator(".origins").evaluate((box) => box.scrollIntoView({ block: "start" }));
    const { x, y, width, height } = (await page.locator(".origins").boundingBox())!;
    const clip = { x: x - 12, y, width: width + 24, height: height + 8 };
    for (let i = 0; i < FRAMES; ++i) {
      await box.evaluate((each) => (each.scrollTop = each.scrollHeight));
      const picture = await page.screenshot({ animations: "disabled", clip });
      if (FOLDER) writeFileSync(join(FOLDER, `film-${String(i).padStart(2, "0")}.png`), picture);
      await page.keyboard.press("ArrowRight");
    }
    expect(Number(await page.locator(".film").getAttribute("data-frame"))).toBeGreaterThanOrEqual(FRAMES - 1);
    await watched.close();
  });
});
