// An answer token by token: each coloured by who proposed it, with a detail of the one that is pointed at, and the film.
import { useMemo, useRef, useState } from "preact/hooks";
import { FAMILIES, familyOf, placesOf, sharesOf, tokenTexts, type TokenPlace } from "../logic/origins";
import { showBidi } from "../logic/plain";
import type { Message, TokenInfo } from "../logic/types";
import { texts } from "../texts";
import { Bar } from "./bar";
import { Film } from "./film";
import { percent } from "./format";
import { Icon } from "./icons";

export function Origins({ message }: { message: Message }) {
  const [film, setFilm] = useState(false);
  const tokens = message.tokens!;
  const finished = message.state !== "streaming";
  return (
    <div class="origins">
      <div class="row legend-row">
        <Legend tokens={tokens} />
        <span class="spring" />
        {finished && (
          <button class="small" aria-pressed={film} onClick={() => setFilm(!film)}>
            <Icon name="film" />
            {texts.origins.film}
          </button>
        )}
      </div>
      {film && finished ? <Film tokens={tokens} steps={message.steps} /> : <TokenText message={message} />}
    </div>
  );
}

export function Legend({ tokens }: { tokens: readonly TokenInfo[] }) {
  const shares = sharesOf(tokens);
  return (
    <ul class="legend" aria-label={texts.origins.legend}>
      {FAMILIES.filter((family) => shares.some((share) => share.family === family)).map((family) => {
        const count = shares.find((share) => share.family === family)!.tokens;
        return (
          <li key={family}>
            <span class={`swatch from-${family}`} aria-hidden="true" />
            {texts.origins.families[family]} <span class="hint">{percent(count / tokens.length)}</span>
          </li>
        );
      })}
    </ul>
  );
}

// The coloured text alone. One listener serves all tokens.
export function TokenSpans({ tokens, current }: { tokens: readonly TokenInfo[]; current?: number }) {
  const shown = tokenTexts(tokens);
  return (
    <>
      {tokens.map((token, i) => (
        <span key={i} class={`token from-${familyOf(token.drafter)}${i === current ? " current" : ""}`} data-token={i} data-drafter={token.drafter ?? ""}>
          {showBidi(shown[i]!)}
        </span>
      ))}
    </>
  );
}

function TokenText({ message }: { message: Message }) {
  const tokens = message.tokens!;
  const [current, setCurrent] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const places = useMemo(() => placesOf(tokens, message.steps), [tokens.length, message.steps]);
  const point = (event: Event) => {
    const index = (event.target as HTMLElement).dataset?.token;
    if (index !== undefined) setCurrent(Number(index));
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setCurrent(Math.min(tokens.length - 1, Math.max(0, (current ?? -1) + step)));
  };
  return (
    <>
      <div ref={box} class="token-text" dir="auto" tabIndex={0} role="group" aria-label={texts.origins.textLabel} onPointerOver={point} onClick={point} onKeyDown={onKey} onFocus={() => current === null && setCurrent(0)}>
        <TokenSpans tokens={tokens} current={current ?? -1} />
      </div>
      {message.state !== "streaming" && <Detail token={current === null ? undefined : tokens[current]} place={current === null ? undefined : places[current]} />}
    </>
  );
}

function Detail({ token, place }: { token: TokenInfo | undefined; place: TokenPlace | undefined }) {
  if (!token || !place) return <p class="detail hint">{texts.origins.hint}</p>;
  const facts = [
    token.drafter ? texts.origins.by(token.drafter) : texts.origins.byTarget,
    ...(place.place >= 0 ? [texts.origins.place(place.place + 1, place.draftLength), texts.origins.accepted] : []),
    ...(place.corrected !== null ? [texts.origins.corrected(visible(place.corrected))] : []),
    texts.origins.step(place.step),
    ...(token.logprob !== undefined ? [texts.origins.probability(percent(Math.exp(token.logprob)))] : []),
  ];
  return (
    <div class="detail" role="status">
      <p>
        <code class={`token from-${familyOf(token.drafter)}`}>{visible(token.text)}</code> {facts.join(" · ")}
      </p>
      {token.top && token.top.length > 0 && (
        <ul class="alternatives" aria-label={texts.origins.alternatives}>
          {token.top.map(([text, logprob], i) => (
            <li key={i}>
              <code>{visible(text)}</code>
              <Bar share={Math.exp(logprob)} label={visible(text)} text={percent(Math.exp(logprob))} />
              <span>{percent(Math.exp(logprob))}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

// White space of a token so that it can be seen.
export function visible(text: string): string {
  return showBidi(text).replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
}
