// The same question with and without drafts, side by side.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, emptyAnswer, streamChat, type Answer } from "../api";
import { differenceOfAnswers } from "../logic/difference";
import { showBidi } from "../logic/plain";
import type { Speculation } from "../logic/types";
import { keyDialog, serverGone } from "../state";
import { texts } from "../texts";
import { duration, percent, short } from "./format";
import { Legend, TokenSpans, visible } from "./origins";

interface Lane {
  answer: Answer;
  state: "waiting" | "running" | "done";
  begun: number;
  ms: number;
}

type Side = "off" | "on";
const SIDES: Side[] = ["off", "on"];
const HOW: Record<Side, Speculation> = { off: { mode: "off", drafters: [] }, on: { mode: "auto", drafters: [] } };

const emptyLane = (): Lane => ({ answer: emptyAnswer(), state: "waiting", begun: 0, ms: 0 });

export function Compare() {
  const form = useRef<HTMLFormElement>(null);
  const abort = useRef<AbortController | null>(null);
  const [lanes, setLanes] = useState<Record<Side, Lane> | null>(null);
  const [running, setRunning] = useState(false);
  const [limit, setLimit] = useState(128);
  const [failure, setFailure] = useState("");

  useEffect(() => () => abort.current?.abort(), []); // nobody reads on

  const run = async () => {
    const data = new FormData(form.current!);
    const prompt = String(data.get("prompt")).trim();
    if (!prompt) return;
    const max_tokens = Number(data.get("max_tokens")) || 128;
    const seed = data.get("seed") === "" ? crypto.getRandomValues(new Uint32Array(1))[0]! : Number(data.get("seed"));
    const settings = { max_tokens, seed, temperature: Number(data.get("temperature")) || 0 };
    const now = { off: emptyLane(), on: emptyLane() };
    const signal = (abort.current = new AbortController()).signal;
    let painting: ReturnType<typeof setTimeout> | undefined;
    const paint = () => {
      painting ??= setTimeout(() => {
        painting = undefined;
        setLanes({ off: { ...now.off }, on: { ...now.on } });
      }, 60);
    };
    const ride = async (side: Side) => {
      const lane = now[side];
      lane.state = "running";
      lane.begun = performance.now();
      paint();
      await streamChat({ messages: [{ role: "user", content: prompt }], settings, speculation: HOW[side], details: false }, lane.answer, () => ((lane.ms = performance.now() - lane.begun), paint()), signal);
      lane.state = "done";
      paint();
    };
    setFailure("");
    setLimit(max_tokens);
    setLanes(now);
    setRunning(true);
    try {
      if (data.get("order") === "at-once") {
        await Promise.all(SIDES.map(ride));
      } else {
        for (const side of SIDES) await ride(side);
      }
    } catch (error) {
      if (!signal.aborted) setFailure(explain(error));
      abort.current.abort();
    }
    clearTimeout(painting);
    setLanes({ off: { ...now.off }, on: { ...now.on } });
    setRunning(false);
  };

  const done = lanes !== null && lanes.off.state === "done" && lanes.on.state === "done";
  return (
    <div class="page compare">
      <h2>{texts.compare.title}</h2>
      <p class="lead">{texts.compare.explain}</p>
      <form ref={form} class="card compare-form" onSubmit={(event) => (event.preventDefault(), void run())}>
        <label>
          {texts.compare.prompt}
          <textarea name="prompt" rows={3} dir="auto" defaultValue={texts.compare.defaultPrompt} />
        </label>
        <div class="row">
          <label>{texts.compare.maxTokens}<input name="max_tokens" type="number" min={1} max={100000} defaultValue="128" /></label>
          <label>{texts.compare.temperature}<input name="temperature" type="number" min={0} max={100} step={0.1} defaultValue="0" /></label>
          <label>{texts.compare.seed}<input name="seed" type="number" min={0} step={1} placeholder={texts.compare.random} /></label>
          <label>
            {texts.compare.order}
            <select name="order">
              <option value="in-turn">{texts.compare.inTurn}</option>
              <option value="at-once">{texts.compare.atOnce}</option>
            </select>
          </label>
          <span class="spring" />
          {running ? (
            <button type="button" class="primary" onClick={() => abort.current?.abort()}>{texts.compare.stop}</button>
          ) : (
            <button type="submit" class="primary">{texts.compare.run}</button>
          )}
        </div>
        <p class="hint">{texts.compare.memory} {texts.compare.sharing}</p>
      </form>
      {failure && <p class="banner bad" role="alert">{texts.compare.failed(showBidi(failure))}</p>}
      <div aria-live="polite">{done && <Verdict off={lanes.off} on={lanes.on} />}</div>
      {lanes ? (
        <div class="lanes">
          {SIDES.map((side) => <LaneView key={side} side={side} lane={lanes[side]} limit={limit} />)}
        </div>
      ) : (
        <p class="empty-lanes">{texts.compare.empty}</p>
      )}
    </div>
  );
}

function explain(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (error.kind === "key") keyDialog.value = "open";
  if (error.kind === "unreachable") serverGone();
  return error.kind === "cut" ? texts.message.cut : error.message || texts.message.unreachable;
}

function Verdict({ off, on }: { off: Lane; on: Lane }) {
  const difference = differenceOfAnswers(off.answer, on.answer);
  const plain = off.answer.timings?.tokensPerSecond ?? 0;
  const drafted = on.answer.timings?.tokensPerSecond ?? 0;
  return (
    <p class={`verdict ${difference ? "bad" : "good"}`}>
      <strong>{difference ? texts.compare.different(texts.parts[difference.part], difference.at) : texts.compare.identical(on.answer.tokens!.length)}</strong>{" "}
      {difference && texts.compare.differentDetail(visible(difference.before), visible(difference.left), visible(difference.right))}
      {plain > 0 && drafted > 0 && texts.compare.faster((drafted / plain).toFixed(2))}
    </p>
  );
}

function LaneView({ side, lane, limit }: { side: Side; lane: Lane; limit: number }) {
  const { answer } = lane;
  const tokens = answer.tokens!;
  const { timings, steps } = answer;
  return (
    <section class={`card lane ${side}`} aria-label={texts.compare[side]} data-state={lane.state}>
      <h3>{texts.compare[side]}</h3>
      <progress class="race" max={lane.state === "done" ? tokens.length || 1 : limit} value={tokens.length} aria-label={texts.compare.race} />
      <ul class="stats">
        {lane.state === "waiting" ? <li>{texts.compare.waiting}</li> : <li><strong>{texts.compare.tokens(tokens.length)}</strong></li>}
        {lane.ms > 0 && <li>{duration(lane.ms)}</li>}
        {timings && <li><strong>{texts.stats.speed(short(timings.tokensPerSecond))}</strong></li>}
        {steps && <li>{texts.stats.steps(steps.length + 1, tokens.length)}</li>}
        {timings && timings.drafted > 0 && <li>{texts.stats.acceptance(percent(timings.accepted / timings.drafted))}</li>}
      </ul>
      {tokens.length > 0 && side === "on" && <Legend tokens={tokens} />}
      <div class="token-text" dir="auto">
        <TokenSpans tokens={tokens} />
      </div>
    </section>
  );
}
