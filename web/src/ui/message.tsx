import { useEffect, useRef, useState } from "preact/hooks";
import { isImageUrl, showBidi, withoutBidi } from "../logic/plain";
import type { Branch } from "../logic/tree";
import type { Image, Message, Proof } from "../logic/types";
import { contextLength, edit, notice, prove, regenerate, settings, showSibling, streaming } from "../state";
import { texts } from "../texts";
import { copyText } from "./copy";
import { duration, percent, short } from "./format";
import { Icon } from "./icons";
import { Markdown } from "./markdown";
import { Origins } from "./origins";

export function MessageView({ message, index, count, origins }: Branch & { origins: boolean }) {
  const [editing, setEditing] = useState(false);
  const own = message.role === "user";
  return (
    <article class={`message ${message.role}`} data-id={message.id} data-state={message.state} aria-label={own ? texts.chat.you : texts.chat.assistant} aria-busy={message.state === "streaming"}>
      {own ? (
        editing ? <Editor message={message} onDone={() => setEditing(false)} /> : <div class="bubble"><Pictures images={message.images ?? []} /><Markdown text={message.content} /></div>
      ) : (
        <AnswerBody message={message} origins={origins} />
      )}
      <div class="message-tools">
        {count > 1 && (
          <span class="branches">
            <button class="quiet small" disabled={index === 0} aria-label={texts.message.previous} onClick={() => showSibling(message, -1)}><Icon name="left" /></button>
            <span>{texts.message.branch(index + 1, count)}</span>
            <button class="quiet small" disabled={index === count - 1} aria-label={texts.message.next} onClick={() => showSibling(message, 1)}><Icon name="right" /></button>
          </span>
        )}
        {message.state !== "streaming" && <CopyButton text={message.content} />}
        {own && !editing && (
          <button class="quiet small" onClick={() => setEditing(true)}><Icon name="pencil" />{texts.message.edit}</button>
        )}
        {!own && message.state !== "streaming" && <AnswerTools message={message} />}
      </div>
    </article>
  );
}

function Pictures({ images }: { images: readonly Image[] }) {
  if (images.length === 0) return null;
  return (
    <div class="pictures">
      {images.map(({ name, url }, i) => isImageUrl(url) && <img key={i} src={url} alt={showBidi(name)} />)}
    </div>
  );
}

function CopyButton({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(withoutBidi(text));
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button class="quiet small" onClick={() => void copy()}>
      <Icon name={copied ? "check" : "copy"} />
      {copied ? texts.message.copied : texts.message.copy}
    </button>
  );
}

function Editor({ message, onDone }: { message: Message; onDone: () => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    area.current!.focus();
    area.current!.style.height = `${area.current!.scrollHeight}px`;
  }, []);
  const save = (event: Event) => {
    event.preventDefault();
    const text = area.current!.value.trim();
    onDone();
    if (text) edit(message, text);
  };
  return (
    <form class="editor" onSubmit={save}>
      <textarea ref={area} dir="auto" aria-label={texts.message.editLabel} defaultValue={message.content} onKeyDown={(event) => event.key === "Escape" && onDone()} />
      <div class="row">
        <button type="submit" class="primary">{texts.message.save}</button>
        <button type="button" class="quiet" onClick={onDone}>{texts.message.cancel}</button>
      </div>
    </form>
  );
}

function AnswerBody({ message, origins }: { message: Message; origins: boolean }) {
  const text = useThrottled(message.content, drawingPause(message, message.content));
  const reasoning = useThrottled(message.reasoning ?? "", drawingPause(message, message.reasoning ?? ""));
  const nothingYet = message.state === "streaming" && !message.content && !message.reasoning && !message.toolCalls;
  return (
    <>
      {nothingYet && <p class="hint waiting" role="status">{waitingText(message)}</p>}
      {message.reasoning && (
        <details class="reasoning">
          <summary>{texts.message.reasoning}</summary>
          <Markdown text={reasoning} />
        </details>
      )}
      {origins && message.tokens && message.tokens.length > 0 ? <Origins message={message} /> : <Markdown text={text} />}
      {message.toolCalls?.map((call, i) => (
        <details class="tool-call" open key={i}>
          <summary>{texts.message.toolCall(showBidi(call.name))}</summary>
          <pre tabIndex={0} dir="auto">{showBidi(call.arguments)}</pre>
        </details>
      ))}
      <Ending message={message} />
      <Stats message={message} />
    </>
  );
}

function waitingText({ waiting }: Message): string {
  if (!waiting) return texts.chat.waiting;
  return "queued" in waiting ? texts.chat.queued(waiting.queued) : texts.chat.reading(waiting.read, waiting.total);
}

// A text that grows is drawn as a whole each time, so a long one is drawn more rarely. In milliseconds.
function drawingPause(message: Message, text: string): number {
  return message.state === "streaming" ? 80 + text.length / 100 : 0;
}

// The newest value, at most every `ms` milliseconds.
function useThrottled(value: string, ms: number): string {
  const [shown, setShown] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const newest = useRef(value);
  newest.current = value;
  useEffect(() => () => clearTimeout(timer.current), []);
  if (ms === 0) return value;
  if (shown !== value) {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      setShown(newest.current);
    }, ms);
  }
  return shown;
}

// Why the answer ended, unless the model just finished.
function Ending({ message }: { message: Message }) {
  const full = contextLength.value > 0 && (message.totalTokens ?? 0) >= contextLength.value;
  const sentence = {
    streaming: "",
    done: message.finish !== "length" ? "" : full ? texts.message.contextFull(contextLength.value) : texts.message.limitReached,
    stopped: texts.message.stopped,
    interrupted: texts.message.interrupted,
    failed: showBidi(message.error ?? ""),
  }[message.state];
  if (!sentence) return null;
  const bad = message.state === "failed" || message.state === "interrupted";
  return (
    <p class={bad ? "ending bad-text" : "ending hint"} role={message.state === "failed" ? "alert" : undefined}>
      {sentence} {bad && <button onClick={() => regenerate(message)}>{texts.message.retry}</button>}
    </p>
  );
}

function Stats({ message }: { message: Message }) {
  const { timings, steps, firstTokenMs } = message;
  if (!timings) return null;
  const shown = message.tokens?.length ?? timings.generatedTokens;
  // The server's estimate; on a busy machine, whose times jump, never more than the steps that were saved.
  const speedUp = steps ? Math.min(timings.speedUp, timings.generatedTokens / (steps.length + 1)) : timings.speedUp;
  return (
    <ul class="stats" aria-label={texts.stats.label}>
      <li><strong>{texts.stats.speed(short(timings.tokensPerSecond))}</strong></li>
      {firstTokenMs !== undefined && <li>{texts.stats.first(duration(firstTokenMs))}</li>}
      {steps && <li>{texts.stats.steps(steps.length + 1, shown)}</li>}
      {timings.drafted > 0 && <li>{texts.stats.acceptance(percent(timings.accepted / timings.drafted))}</li>}
      {speedUp > 1.005 && <li class="good-text">{texts.stats.speedUp(speedUp.toFixed(2))}</li>}
    </ul>
  );
}

function ProofResult({ proof, seed }: { proof: Proof; seed: number }) {
  const how = texts.speculation[proof.speculation ?? "auto"];
  const sentence = {
    running: texts.message.proving,
    same: texts.message.proven(proof.tokens ?? 0, seed),
    different: texts.message.notProven(how, texts.parts[proof.part ?? "content"], proof.at ?? 0),
    failed: texts.message.proofFailed(how, showBidi(proof.why ?? "")),
  }[proof.state];
  return <span class={`proof ${proof.state === "same" ? "good-text" : proof.state === "running" ? "hint" : "bad-text"}`} data-state={proof.state} role="status">{sentence}</span>;
}

function reuseSeed(seed: number): void {
  settings.value = { ...settings.value, seed };
  notice.value = texts.message.seedUsed(seed);
}

function AnswerTools({ message }: { message: Message }) {
  const busy = streaming.value.size > 0;
  return (
    <>
      <button class="quiet small" onClick={() => regenerate(message)}><Icon name="redo" />{texts.message.regenerate}</button>
      {message.seed !== undefined && (
        <>
          <button class="quiet small" title={texts.message.useSeed} onClick={() => reuseSeed(message.seed!)}>
            <Icon name="seed" />
            {texts.message.seed(message.seed)}
          </button>
          {message.state === "done" && <button class="quiet small" disabled={busy || message.proof?.state === "running"} onClick={() => void prove(message)}>{texts.message.prove}</button>}
        </>
      )}
      {message.proof?.state && <ProofResult proof={message.proof} seed={message.seed ?? 0} />}
    </>
  );
}
