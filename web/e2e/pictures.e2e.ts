// The pictures of the README, made with the model that ./run serves and the small draft model. They are written to
// OUTRIDER_PICTURES, or else only made: a picture that cannot be taken any more is a test that fails.
//
//   OUTRIDER_PICTURES=$PWD/docs/page npm --prefix web run e2e -- pictures
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send, Server, SMALL_MODEL, startBrowser, stopBrowser, waitForAnswer, Watched } from "./harness";

const FOLDER = process.env.OUTRIDER_PICTURES;
const MODEL = process.env.OUTRIDER_DEFAULT_MODEL || SMALL_MODEL;
const QUESTION = "List the days of the week with one sentence about each, then list the days again.";
const FRAMES = 30; // of the film: ten seconds

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

describe("pictures", () => {
  it("origins, light", async () => {
    const watched = await Watched.open(server.url, { viewport: { width: 1200, height: 1060 } });
    await ask(watched.page);
    const drafted = watched.page.locator('[data-token]:not([data-drafter=""])');
    if ((await drafted.count()) > 6) await drafted.nth(6).hover(); // what pays, and is drafted, depends on the machine
    await watched.page.locator(".detail").scrollIntoViewIfNeeded();
    await take(watched.page, "origins.png");
    await watched.close();
  });

  it("compare and dashboard, dark", async () => {
    const watched = await Watched.open(`${server.url}#/compare`, { viewport: { width: 1200, height: 820 }, colorScheme: "dark" });
    const { page } = watched;
    await page.getByLabel("Question").fill(QUESTION);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".verdict.good").waitFor();
    await take(page, "compare-dark.png");
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.locator(".chart canvas").first().waitFor();
    const abort = new AbortController();
    for (const content of ["Tell me about the sea.", "Count to fifty, twice.", "Write a poem, then write it again."]) {
      const body = JSON.stringify({ messages: [{ role: "user", content }], max_tokens: 2000, ignore_eos: true });
      fetch(`${server.url}v1/chat/completions`, { method: "POST", body, signal: abort.signal }).catch(() => {});
    }
    await page.waitForTimeout(5000);
    await take(page, "dashboard-dark.png");
    abort.abort();
    await watched.close();
  });

  it("on a phone", async () => {
    const watched = await Watched.open(server.url, { viewport: { width: 400, height: 800 } });
    await ask(watched.page);
    await take(watched.page, "phone.png");
    await watched.close();
  });

  it("the film", async () => {
    const watched = await Watched.open(server.url, { viewport: { width: 720, height: 700 } });
    const { page } = watched;
    await ask(page);
    await page.getByRole("button", { name: "Film" }).click();
    await page.getByLabel("Place in the film").focus();
    await page.keyboard.press("Home");
    await page.locator(".film .token-text").evaluate((box) => (box.style.height = "250px")); // all frames have one size
    await page.locator(".origins").evaluate((box) => box.scrollIntoView({ block: "start" }));
    const { x, y, width, height } = (await page.locator(".origins").boundingBox())!;
    const clip = { x: x - 12, y, width: width + 24, height: height + 8 };
    for (let i = 0; i < FRAMES; ++i) {
      const picture = await page.screenshot({ animations: "disabled", clip });
      if (FOLDER) writeFileSync(join(FOLDER, `film-${String(i).padStart(2, "0")}.png`), picture);
      await page.keyboard.press("ArrowRight");
    }
    expect(Number(await page.locator(".film").getAttribute("data-frame"))).toBeGreaterThan(10);
    await watched.close();
  });
});
