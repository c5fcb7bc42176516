// Asking, stopping, branching, origins and the film, in a browser against the real server.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answers, choose, DEFAULT_MODEL, eventually, LIMIT, send, Server, startBrowser, stopBrowser, waitForAnswer, Watched } from "./harness";

const QUESTION = "Count from one to twenty, then do it again.";
let server: Server;
let slow: Server; // for answers that must not be over before the test has looked at them: they only end at their limit

beforeAll(async () => {
  await startBrowser();
  // Every draft is verified and nothing is remembered, so that there are right and wrong ones however fast this machine is.
  server = await Server.start(["--spec", "suffix", "--spec", "ngram-map-k", "--spec-always", "--spec-forget", "--temp", "0"]);
  slow = await Server.start(["--spec", "none", "--temp", "0", "--ignore-eos"], { model: DEFAULT_MODEL });
});
afterAll(async () => {
  await stopBrowser();
  await server.stop();
  await slow.stop();
});

const open = () => Watched.open(server.url);
const endless = { "Longest answer": "3500", "Repeat penalty": "1.2" };
const STORY = "Tell me a very long story about the sea.";

describe("chat", () => {
  it("sends a message and streams the answer", async () => {
    const watched = await open();
    const { page } = watched;
    await page.getByRole("button", { name: "Explain in two sentences why the sky is blue. Then repeat them." }).waitFor();
    await send(page, QUESTION);
    await page.locator("article.user").waitFor();
    expect((await waitForAnswer(page)).length).toBeGreaterThan(20);
    expect(await page.locator(".stats").innerText()).toMatch(/tokens\/s.*first token.*tokens in \d+ steps/s);
    expect(await page.locator(".conversation-list a").innerText()).toBe(QUESTION);
    expect(page.url()).toMatch(/#\/chat\/\w+$/);
    await send(page, "And now backwards.");
    await eventually(async () => (await answers(page).count()) === 2, "a second answer");
    await waitForAnswer(page);
    await page.reload();
    await page.locator("article").nth(3).waitFor();
    await watched.close();
  });

  it("stops an answer, and the server stops too", async () => {
    const watched = await Watched.open(slow.url);
    const { page } = watched;
    await choose(page, endless);
    await send(page, STORY);
    await page.locator('article.assistant[data-state="streaming"] .markdown').waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    expect((await waitForAnswer(page, "stopped")).length).toBeGreaterThan(0);
    await eventually(() => slow.idle(), "the slot to be free");
    expect(await page.locator(".ending").innerText()).toContain("Stopped.");
    await watched.close();
  });

  it("edits a question and keeps both branches", async () => {
    const watched = await open();
    const { page } = watched;
    await send(page, QUESTION);
    const first = await waitForAnswer(page);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Edited message").fill("Name three colours.");
    await page.getByRole("button", { name: "Send as a new branch" }).click();
    await page.getByText("2 of 2").waitFor();
    const second = await waitForAnswer(page);
    expect(second).toMatch(/\w/);
    expect(second).not.toBe(first);
    await page.getByRole("button", { name: "Previous branch" }).click();
    await page.locator("article.user").getByText(QUESTION).waitFor();
    expect(await waitForAnswer(page)).toBe(first);
    await page.getByRole("button", { name: "Next branch" }).click();
    await page.locator("article.user").getByText("Name three colours.").waitFor();
    expect(await waitForAnswer(page)).toBe(second);
    await watched.close();
  });

  it("repeats an answer as a branch, and proves that the same seed gives the same text", async () => {
    const watched = await open();
    const { page } = watched;
    await choose(page, { Temperature: "1", "Longest answer": "40" });
    await send(page, QUESTION);
    const first = await waitForAnswer(page);
    await page.getByRole("button", { name: "Same seed, same text?" }).click();
    await page.getByText(/^Identical: the same \d+ tokens again with seed \d+/).waitFor();
    await page.getByRole("button", { name: /^seed \d+/ }).click();
    await page.getByText(/^The next messages use seed \d+/).waitFor();
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.getByText("2 of 2").waitFor();
    expect(await waitForAnswer(page)).toBe(first);
    await watched.close();
  });

  it.each([
    ["with the same speculation", 1, "auto"],
    ["with the other choice", 2, "off"],
  ])("says in red when an answer differs that was asked for again %s", async (_which, tampered, how) => {
    const watched = await open();
    const { page } = watched;
    await choose(page, { "Longest answer": "24", Temperature: "0.7", "System prompt": "Be kind." });
    await send(page, QUESTION);
    await waitForAnswer(page);
    const asked: Record<string, unknown>[] = [];
    await page.route("**/v1/chat/completions", async (route) => {
      asked.push(route.request().postDataJSON());
      const response = await route.fetch();
      const text = await response.text();
      await route.fulfill({ response, body: asked.length === tampered ? text.replace(/"finish_reason":"(length|stop)"/, '"finish_reason":"other"') : text });
    });
    await page.getByRole("button", { name: "Same seed, same text?" }).click();
    const result = page.locator('.proof[data-state="different"]');
    await result.waitFor();
    expect(await result.innerText()).toBe(`Different: asked again with speculation “${how}”, the reason why the answer ended is another from place 0 on.`);
    expect(await result.getAttribute("class")).toContain("bad-text");
    expect(asked).toHaveLength(tampered);
    const { speculative, ...rest } = asked[0]!;
    expect(speculative).toEqual({ provenance: true, enabled: true });
    expect(rest).toMatchObject({ max_tokens: 24, temperature: 0.7, logprobs: true, messages: [{ role: "system", content: "Be kind." }, { role: "user", content: QUESTION }] });
    expect(rest.seed).toEqual(expect.any(Number));
    if (tampered === 2) expect(asked[1]).toEqual({ ...asked[0], speculative: { provenance: true, enabled: false } });
    await watched.close();
  });

  it("follows a JSON schema, and speculation can be switched off", async () => {
    const watched = await open();
    const { page } = watched;
    await choose(page, { "JSON schema": '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}', "Longest answer": "60" });
    await page.getByLabel("Speculation").selectOption("off");
    await send(page, "Give me a number.");
    expect(JSON.parse(await waitForAnswer(page))).toHaveProperty("n");
    expect(await page.locator(".stats").innerText()).not.toContain("accepted");
    await watched.close();
  });

  it("exports conversations and imports them again, with all that is known about them", async () => {
    const watched = await open();
    const { page } = watched;
    await choose(page, { "Longest answer": "24", Temperature: "0.7", "System prompt": "Be brief." });
    await send(page, QUESTION);
    const answer = await waitForAnswer(page);
    await page.getByRole("button", { name: "Same seed, same text?" }).click();
    await page.locator('.proof[data-state="same"]').waitFor();
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Edited message").fill("Name three colours.");
    await page.getByRole("button", { name: "Send as a new branch" }).click();
    await page.getByText("2 of 2").waitFor();
    const other = await waitForAnswer(page);
    await page.getByRole("button", { name: "Previous branch" }).click();
    const exported = async () => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export all" }).click()]);
      return JSON.parse(readFileSync(await download.path(), "utf8"));
    };
    const before = await exported();
    page.on("dialog", (dialog) => void dialog.accept());
    await page.locator(".conversation-list li").hover();
    await page.getByRole("button", { name: /^Delete/ }).click();
    await page.getByText("No conversations yet").waitFor();
    await page.locator('.sidebar input[type="file"]').setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(before)) });
    await page.locator(".conversation-list a").click();
    await page.locator("article.user").getByText(QUESTION).waitFor();
    expect(await waitForAnswer(page)).toBe(answer);
    // All but the ids is as it was: in the list of messages, ids are replaced by the places of their messages.
    const after = await exported();
    const withPlaces = ({ conversations }: any) => {
      const [{ conversation, messages }] = conversations;
      // An answer may begin in the millisecond of its question.
      const byTime = [...messages].sort((a: any, b: any) => a.created - b.created || b.role.localeCompare(a.role));
      const place = (id: string | null) => byTime.findIndex((each: any) => each.id === id);
      return {
        conversation: { ...conversation, id: "", selected: Object.entries(conversation.selected).map(([from, to]) => [place(from), place(to as string)]).sort() },
        messages: byTime.map((each: any) => ({ ...each, id: "", conversation: "", parent: place(each.parent) })),
      };
    };
    expect(withPlaces(before).messages).toHaveLength(4);
    expect(withPlaces(after)).toEqual(withPlaces(before));
    await page.getByRole("button", { name: "Next branch" }).click();
    await page.locator("article.user").getByText("Name three colours.").waitFor();
    expect(await waitForAnswer(page)).toBe(other);
    await watched.close();
  });

  it("shows in a second tab what the first one is told", async () => {
    const watched = await Watched.open(slow.url);
    const { page } = watched;
    await choose(page, endless);
    await send(page, STORY);
    await page.locator('article.assistant[data-state="streaming"] .markdown').waitFor();
    const other = await watched.another(page.url());
    await other.locator('article.assistant[data-state="streaming"] .markdown').waitFor();
    const before = (await other.locator("article.assistant .markdown").innerText()).length;
    await eventually(async () => (await other.locator("article.assistant .markdown").innerText()).length > before, "the other tab's text to grow");
    await page.getByRole("button", { name: "Stop" }).click();
    const text = await waitForAnswer(page, "stopped");
    expect(await waitForAnswer(other, "stopped")).toBe(text);
    await watched.close();
  });

  it("keeps what had arrived when the page is loaded again in the middle of a stream", async () => {
    const watched = await Watched.open(slow.url);
    const { page } = watched;
    await choose(page, endless);
    await send(page, STORY);
    await page.locator('article.assistant[data-state="streaming"] .markdown').waitFor();
    await page.waitForTimeout(1000);
    await page.reload();
    expect((await waitForAnswer(page, "interrupted")).length).toBeGreaterThan(0);
    await eventually(() => slow.idle(), "the server to notice that nobody listens");
    await choose(page, { "Longest answer": "20" });
    await page.getByRole("button", { name: "Try again" }).click();
    await waitForAnswer(page);
    await watched.close();
  });
});

interface WireToken {
  text: string;
  drafter: string | null;
}

describe("origins", () => {
  it("colours every token by who proposed it, as the API says", async () => {
    const watched = await open();
    const { page } = watched;
    await page.getByLabel("Origins").check();
    const [response] = await Promise.all([page.waitForResponse("**/v1/chat/completions"), send(page, QUESTION)]);
    const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: {"));
    const said = events.flatMap((event) => (JSON.parse(event.slice(6)).provenance ?? []) as WireToken[]);
    await waitForAnswer(page);
    const shown = await page.locator(".token-text [data-token]").evaluateAll((spans) => spans.map((span) => ({ text: span.textContent, drafter: (span as HTMLElement).dataset.drafter || null, family: /from-(\w+)/.exec(span.className)![1] })));
    expect(shown.map(({ text, drafter }) => ({ text, drafter }))).toEqual(said.map(({ text, drafter }) => ({ text, drafter })));
    const families: Record<string, string> = { suffix: "suffix", "ngram-map-k": "ngram" };
    for (const token of shown) expect(token.family).toBe(token.drafter ? families[token.drafter] : "target");
    expect(said.some((token) => token.drafter !== null)).toBe(true);
    expect(await page.locator(".legend").innerText()).toContain("target model");
    await watched.close();
  });

  it("tells about the token that is pointed at, by mouse and by keyboard", async () => {
    const watched = await open();
    const { page } = watched;
    await page.getByLabel("Origins").check();
    await send(page, QUESTION);
    await waitForAnswer(page);
    await page.locator('[data-token][data-drafter="suffix"], [data-token][data-drafter="ngram-map-k"]').first().hover();
    expect(await page.locator(".detail").innerText()).toMatch(/proposed by (suffix|ngram-map-k) · place \d+ of \d+ in the draft · accepted · step \d+ · probability \d/);
    expect(await page.locator(".alternatives li").count()).toBe(4);
    await page.locator(".token-text").focus();
    await page.keyboard.press("ArrowRight");
    const at = Number(await page.locator(".token.current").getAttribute("data-token"));
    await page.keyboard.press("ArrowLeft");
    expect(Number(await page.locator(".token.current").getAttribute("data-token"))).toBe(at - 1);
    await watched.close();
  });

  it("plays a film that strikes wrong drafts out and ends in the same text", async () => {
    const watched = await open();
    const { page } = watched;
    await page.getByLabel("Origins").check();
    await send(page, QUESTION);
    await waitForAnswer(page);
    const answer = await page.locator(".token-text").textContent();
    await page.getByRole("button", { name: "Film" }).click();
    const frames = Number(await page.locator(".film").getAttribute("data-frames"));
    let struck = 0;
    await page.getByLabel("Place in the film").focus();
    await page.keyboard.press("Home");
    for (let frame = 0; frame < frames; ++frame) {
      struck += await page.locator(".film del").count();
      await page.keyboard.press("ArrowRight");
    }
    expect(struck).toBeGreaterThan(0);
    await page.keyboard.press("End");
    const kept = await page.locator(".film .token-text").evaluate((box) => [...box.children].filter((child) => child.tagName !== "DEL").map((child) => child.textContent).join(""));
    expect(kept).toBe(answer);
    await page.keyboard.press("Home");
    await page.getByRole("button", { name: "Play" }).click();
    await eventually(async () => Number(await page.locator(".film").getAttribute("data-frame")) > 1, "the film to run");
    await watched.close();
  });
});

describe("compare", () => {
  it("says in red where the answers differ, in their text or anywhere else", async () => {
    const watched = await open();
    const { page } = watched;
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Tokens", { exact: true }).fill("16");
    let change = (text: string) => text;
    await page.route("**/v1/chat/completions", async (route) => {
      const response = await route.fetch();
      const drafts = route.request().postDataJSON().speculative.enabled;
      await route.fulfill({ response, body: drafts ? change(await response.text()) : await response.text() });
    });
    const changes: [RegExp, (text: string) => string][] = [
      [/the text is another/, (text) => text.replace(/"content":"(?=\w)/, '"content":"Not ')],
      [/the reasoning is another/, (text) => text.replace('"delta":{}', '"delta":{"reasoning_content":"Hm"}')],
      [/the tool calls are others/, (text) => text.replace('"delta":{}', '"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}')],
    ];
    for (const [verdict, make] of changes) {
      change = make;
      await page.getByRole("button", { name: "Compare" }).click();
      await page.locator(".verdict.bad").getByText(verdict).waitFor();
    }
    await watched.close();
  });

  it("is over for the server when the view is left", async () => {
    const watched = await Watched.open(slow.url);
    const { page } = watched;
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Tokens", { exact: true }).fill("3500");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".lane.off .token").first().waitFor();
    expect(await slow.idle()).toBe(false);
    await page.getByRole("link", { name: "Chat" }).click();
    await eventually(() => slow.idle(), "the slot to be free");
    await watched.close();
  });

  it.each(["one after the other", "at once"])("finds the texts identical, asked %s", async (order) => {
    const watched = await open();
    const { page } = watched;
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Tokens", { exact: true }).fill("64");
    await page.getByLabel("Temperature").fill("0.8");
    await page.getByLabel("Order").selectOption(order);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".verdict.good").waitFor({ timeout: LIMIT });
    expect(await page.locator(".verdict").innerText()).toMatch(/^Identical: both texts have the same \d+ tokens\./);
    const [off, on] = await page.locator(".lane .token-text").allTextContents();
    expect(on).toBe(off);
    expect(await page.locator('.lane.off [data-drafter]:not([data-drafter=""])').count()).toBe(0);
    await watched.close();
  });
});
