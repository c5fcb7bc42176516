// The film of an answer: each step's draft appears, then the target accepts its beginning, strikes out the rest and adds a
// token of its own.
import { useEffect, useMemo, useState } from "preact/hooks";
import { familyOf, filmOf, tokenTexts } from "../logic/origins";
import { showBidi } from "../logic/plain";
import type { StepInfo, TokenInfo } from "../logic/types";
import { texts } from "../texts";
import { duration } from "./format";
import { Icon } from "./icons";

const FRAME_MS = 420;

export function Film({ tokens, steps }: { tokens: readonly TokenInfo[]; steps: readonly StepInfo[] | undefined }) {
  const frames = useMemo(() => filmOf(tokens, steps), [tokens, steps]);
  const shown = useMemo(() => tokenTexts(tokens), [tokens]);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(!calm);
  const last = frames.length - 1;
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => setAt((now) => Math.min(now + 1, last)), FRAME_MS);
    return () => clearInterval(timer);
  }, [playing, last]);
  useEffect(() => {
    if (playing && at >= last) setPlaying(false);
  }, [playing, at, last]);
  const frame = frames[at];
  if (!frame) return <p class="hint">{texts.origins.noTokens}</p>;
  const onPlay = () => {
    if (!playing && at >= last) setAt(0);
    setPlaying(!playing);
  };
  const phase = frame.phase === "draft" ? "draft" : frame.pieces.length === 1 && frame.pieces[0]!.kind === "own" ? "own" : "verify";
  return (
    <div class="film" role="group" aria-label={texts.origins.filmLabel} data-frame={at} data-frames={frames.length}>
      <div class="token-text" dir="auto">
        {tokens.slice(0, frame.written).map((token, i) => (
          <span key={i} class={`token from-${familyOf(token.drafter)}`}>{showBidi(shown[i]!)}</span>
        ))}
        {frame.pieces.map((piece, i) =>
          piece.kind === "rejected" ? (
            <del key={`new${i}`} class={`token new rejected from-${familyOf(piece.drafter)}`}>{showBidi(piece.text)}</del>
          ) : (
            <span key={`new${i}`} class={`token new ${piece.kind} from-${familyOf(piece.drafter)}`}>{showBidi(piece.text)}</span>
          ),
        )}
      </div>
      <div class="row film-bar">
        <button class="small" onClick={onPlay}>
          <Icon name={playing ? "pause" : "play"} />
          {playing ? texts.origins.pause : at >= last ? texts.origins.again : texts.origins.play}
        </button>
        <input type="range" min={0} max={last} value={at} aria-label={texts.origins.filmPosition} onInput={(event) => (setPlaying(false), setAt(event.currentTarget.valueAsNumber))} />
        <span class="film-step">
          {texts.origins.filmStep(frame.step + 1, frames[last]!.step + 1)}: {texts.origins.phases[phase]}
          {frame.ms > 0 && ` · ${duration(frame.ms)}`}
        </span>
      </div>
      {!steps && <p class="hint">{texts.origins.rejectedUnknown}</p>}
    </div>
  );
}
