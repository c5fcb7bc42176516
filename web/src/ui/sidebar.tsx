import { useRef, useState } from "preact/hooks";
import type { Conversation } from "../logic/types";
import { showBidi } from "../logic/plain";
import { conversations, currentId, deleteConversation, exportAll, go, importAll, renameConversation } from "../state";
import { texts } from "../texts";
import { Icon } from "./icons";

export function Sidebar({ open, onToggle }: { open: boolean; onToggle: () => void }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <button class="quiet sidebar-toggle" aria-expanded={open} aria-controls="sidebar" aria-label={open ? texts.conversations.close : texts.conversations.open} onClick={onToggle}>
        <Icon name="menu" />
      </button>
      <aside id="sidebar" class="sidebar" aria-label={texts.conversations.title}>
        <button class="new" onClick={() => go("chat")}>
          <Icon name="plus" />
          {texts.conversations.new}
        </button>
        {conversations.value.length === 0 && <p class="hint">{texts.conversations.none}</p>}
        <ul class="conversation-list">
          {conversations.value.map((conversation) => (
            <Entry key={conversation.id} conversation={conversation} />
          ))}
        </ul>
        <div class="row">
          <button class="quiet" onClick={() => void download()}>{texts.conversations.export}</button>
          <button class="quiet" onClick={() => picker.current!.click()}>{texts.conversations.import}</button>
          <input ref={picker} type="file" accept="application/json,.json" hidden aria-label={texts.conversations.import} onChange={(event) => void upload(event.currentTarget)} />
        </div>
      </aside>
    </>
  );
}

function Entry({ conversation }: { conversation: Conversation }) {
  const [renaming, setRenaming] = useState(false);
  const { id } = conversation;
  const title = showBidi(conversation.title);
  if (renaming) {
    const done = (input: HTMLInputElement, keep: boolean) => {
      setRenaming(false);
      if (keep) renameConversation(conversation, input.value);
    };
    return (
      <li>
        <input class="rename" aria-label={texts.conversations.newName} value={conversation.title} ref={(input) => input?.focus()}
          onBlur={(event) => done(event.currentTarget, true)}
          onKeyDown={(event) => (event.key === "Enter" || event.key === "Escape") && done(event.currentTarget, event.key === "Enter")} />
      </li>
    );
  }
  return (
    <li class={id === currentId.value ? "current" : ""}>
      <a href={`#/chat/${id}`} dir="auto" aria-current={id === currentId.value ? "true" : undefined}>{title}</a>
      <button class="quiet small" aria-label={texts.conversations.rename(title)} onClick={() => setRenaming(true)}>
        <Icon name="pencil" />
      </button>
      <button class="quiet small" aria-label={texts.conversations.delete(title)} onClick={() => confirm(texts.conversations.confirmDelete(title)) && void deleteConversation(id)}>
        <Icon name="trash" />
      </button>
    </li>
  );
}

async function download(): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([await exportAll()], { type: "application/json" }));
  link.download = `outrider-conversations-${new Date().toISOString().slice(0, 10)}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function upload(input: HTMLInputElement): Promise<void> {
  const file = input.files?.[0];
  if (file) await importAll(await file.text());
  input.value = "";
}
