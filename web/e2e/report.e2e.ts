// The page that `outrider bench` writes, with the reports of docs/bench.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, openFile, startBrowser, stopBrowser, violations } from "./harness";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const report = (name: string) => resolve(ROOT, "docs/bench", name);
const template = (name: string) => readFileSync(resolve(ROOT, "src/bench/page", name), "utf8");

beforeAll(startBrowser);
afterAll(stopBrowser);

describe.each(["default.html", "widened.html"])("the report %s", (name) => {
  it("is made by the page that outrider bench has now (bench/renew-report.mjs renews it)", () => {
    const html = readFileSync(report(name), "utf8");
    expect(html).toContain(template("plots.js"));
    for (const part of template("report.html").split(/\/\*(?:VEGA|PLOTS|DATA)\*\//)) expect(html).toContain(part);
  });

  it.each([
    ["light", 1280],
    ["light", 400],
    ["dark", 1280],
    ["dark", 400],
  ] as const)("is accessible and fits: %s, %i pixels wide", async (colorScheme, width) => {
    const { page, close } = await openFile(pathToFileURL(report(name)).href, { colorScheme, viewport: { width, height: 900 } });
    await page.locator("#timeline svg.marks").waitFor();
    expect(await page.locator("#headline").innerText()).toMatch(/is \d\.\d\d times as fast as plain\..*Same text in all 52 answers\./s);
    expect(await page.locator("svg.marks").count()).toBe(6);
    // One sentence and one picture on the first screen.
    expect((await page.locator("#first-plot svg.marks").boundingBox())!.y).toBeLessThan(600);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(colorScheme === "dark" ? "rgb(17, 22, 27)" : "rgb(247, 248, 249)");
    await page.getByText("All numbers").click();
    expect(await violations(page)).toEqual([]);
    await close();
  });
});

describe("a report", () => {
  it("follows the colours of the system and the width of the window", async () => {
    const { page, close } = await openFile(pathToFileURL(report("default.html")).href, { colorScheme: "light", viewport: { width: 1280, height: 900 } });
    const background = () => page.locator("#first-plot svg.marks").evaluate((plot) => getComputedStyle(plot).backgroundColor);
    await page.locator("#timeline svg.marks").waitFor();
    expect(await background()).toBe("rgb(255, 255, 255)");
    const wide = (await page.locator("#first-plot svg.marks").boundingBox())!.width;
    await page.emulateMedia({ colorScheme: "dark" });
    await eventually(async () => (await background()) === "rgb(24, 31, 38)", "the plots to be drawn again");
    await page.setViewportSize({ width: 500, height: 900 });
    await page.waitForFunction((before) => document.querySelector("#first-plot svg.marks")!.getBoundingClientRect().width < before - 50, wide);
    await close();
  });

  it.each(["{}", '{"variants":["plain"]}', '{"variants":["plain","auto"],"places":[{"variant":"auto","drafter":"suffix","place":1,"chance":0.5,"asked":3}],"lengths":[]}'])("of an earlier version is shown as far as it goes: %s", async (data) => {
    const parts: Record<string, string> = { VEGA: readFileSync(report("default.html"), "utf8").match(/<script>([\s\S]*?)<\/script>/)![1]!, PLOTS: template("plots.js"), DATA: data };
    const file = join(mkdtempSync(join(tmpdir(), "report-")), "report.html");
    writeFileSync(file, template("report.html").replace(/\/\*(VEGA|PLOTS|DATA)\*\//g, (_all, part: string) => parts[part]!));
    const { page, close } = await openFile(pathToFileURL(file).href);
    await page.getByText("All numbers").waitFor();
    expect(await page.locator("svg.marks").count() > 0 || data.length < 40).toBe(true);
    await close();
  });
});
