import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { current, currentId, path, preferences, send, stop, streaming } from "../state";
import { texts } from "../texts";
import { showBidi } from "../logic/plain";
import { Composer } from "./composer";
import { loadMarkdown } from "./markdown";
import { MessageView } from "./message";
import { Sidebar } from "./sidebar";

const PAGE = 40; // messages shown at first, and each time that more are asked for

export function Chat() {
  const [sidebarOpen, setSidebarOpen] = useState(false);
  useEffect(loadMarkdown, []);
  useEffect(() => setSidebarOpen(false), [currentId.value]);
  return (
    <div class="chat" data-sidebar={sidebarOpen ? "open" : "closed"}>
      <Sidebar open={sidebarOpen} onToggle={() => setSidebarOpen(!sidebarOpen)} />
      <section class="conversation" aria-label={current.value ? showBidi(current.value.title) : texts.conversations.untitled}>
        <MessageList key={currentId.value ?? ""} />
        <ComposerOfPath />
      </section>
    </div>
  );
}

// The composer must not be drawn again whenever an answer grows.
function ComposerOfPath() {
  const last = path.value.at(-1)?.message;
  const running = last && streaming.value.has(last.id) ? last.id : null;
  return useMemo(() => <Composer running={running !== null} onSend={send} onStop={() => running && stop(running)} />, [running]);
}

function MessageList() {
  const [shown, setShown] = useState(PAGE);
  const list = useRef<HTMLDivElement>(null);
  const follow = useRef(true); // the end is in view, so it stays there when the answer grows
  const branches = path.value;
  const hidden = Math.max(0, branches.length - shown);
  useLayoutEffect(() => {
    const box = list.current;
    if (box && follow.current) box.scrollTop = box.scrollHeight;
  });
  if (branches.length === 0) return <Empty />;
  const onScroll = () => {
    const box = list.current!;
    follow.current = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  };
  return (
    <div class="messages" ref={list} onScroll={onScroll} role="log" aria-label={texts.chat.messages} tabIndex={0}>
      <div class="column">
        {hidden > 0 && (
          <button class="quiet earlier" onClick={() => ((follow.current = false), setShown(shown + PAGE))}>
            {texts.chat.earlier(Math.min(hidden, PAGE))}
          </button>
        )}
        {branches.slice(hidden).map((branch) => (
          <MemoMessage key={branch.message.id} {...branch} origins={preferences.value.origins} />
        ))}
      </div>
    </div>
  );
}

// Drawn again only if something about this message changed.
function MemoMessage(branch: Parameters<typeof MessageView>[0]) {
  return useMemo(() => <MessageView {...branch} />, [branch.message, branch.index, branch.count, branch.origins]);
}

function Empty() {
  return (
    <div class="messages">
      <div class="empty">
        <h2>{texts.chat.emptyTitle}</h2>
        <p>{texts.chat.emptyText}</p>
        <ul class="examples">
          {texts.chat.examples.map((example) => (
            <li key={example}>
              <button onClick={() => send(example)}>{example}</button>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
