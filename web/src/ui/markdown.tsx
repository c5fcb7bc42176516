// A model's text. The renderer is loaded after the first paint; until then, and for texts that are too long or too
// costly for it, the text is shown as it is.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { MAX_MARKDOWN, MAX_SHOWN, showBidi, withoutBidi } from "../logic/plain";
import { notice } from "../state";
import { texts } from "../texts";
import { copyText } from "./copy";

type Render = (text: string) => string | null;
const renderer = signal<Render | null>(null);

export function loadMarkdown(): void {
  if (!renderer.value) void import("../logic/markdown").then((module) => (renderer.value = module.renderMarkdown)).catch(() => (notice.value = texts.loadFailed));
}

export function Markdown({ text }: { text: string }) {
  const render = renderer.value;
  const box = useRef<HTMLDivElement>(null);
  const html = useMemo(() => (render && text.length <= MAX_MARKDOWN ? render(text) : null), [text, render]);
  useEffect(() => {
    if (box.current && html !== null) furnish(box.current);
  }, [html]);
  if (html === null) return <LongText text={text} />;
  return <div ref={box} class="markdown" dir="auto" dangerouslySetInnerHTML={{ __html: html }} />;
}

function LongText({ text }: { text: string }) {
  const [shown, setShown] = useState(MAX_SHOWN);
  return (
    <>
      <div class="plain" dir="auto">
        {showBidi(text.slice(0, shown))}
      </div>
      {text.length > shown && (
        <button class="quiet" onClick={() => setShown(shown + MAX_SHOWN)}>
          {texts.message.showMore(Math.min(MAX_SHOWN, text.length - shown))}
        </button>
      )}
    </>
  );
}

// Blocks of code get a copy button; what may be wider than the page can be scrolled, also by keyboard.
function furnish(box: HTMLElement): void {
  for (const block of box.querySelectorAll("pre")) {
    block.tabIndex = 0;
    const frame = document.createElement("div");
    frame.className = "code-block";
    block.replaceWith(frame);
    const button = document.createElement("button");
    button.className = "copy-code quiet";
    button.textContent = texts.message.copy;
    button.setAttribute("aria-label", texts.message.copyCode);
    button.onclick = () => {
      void copyText(withoutBidi(block.textContent ?? ""));
      button.textContent = texts.message.copied;
      setTimeout(() => (button.textContent = texts.message.copy), 1500);
    };
    frame.append(block, button);
  }
  for (const table of box.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "table-block";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
}
