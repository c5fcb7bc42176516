import { useRef, useState } from "preact/hooks";
import { notice, preferences } from "../state";
import { texts } from "../texts";
import { Icon } from "./icons";
import { SettingsButton } from "./settings";
import { SpeculationPicker } from "./speculation";

const MAX_FILE = 256 * 1024;

// The text of a file as a block of a message; null if it is not text.
async function fileBlock(file: File): Promise<string | null> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) return null;
    const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((run) => run[0].length + 1)));
    return `${file.name}:\n${fence}\n${text.trimEnd()}\n${fence}\n`;
  } catch {
    return null;
  }
}

export function Composer({ running, onSend, onStop }: { running: boolean; onSend: (text: string) => void; onStop: () => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [dropping, setDropping] = useState(false);

  // The text lives in the element: a key that is typed draws nothing but the element itself.
  const grow = () => {
    const box = area.current!;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, innerHeight * 0.4)}px`;
  };
  const submit = () => {
    const text = area.current!.value.trim();
    if (!text || running) return;
    area.current!.value = "";
    grow();
    onSend(text);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  const addFiles = async (files: Iterable<File>) => {
    for (const file of files) {
      const block = file.size <= MAX_FILE ? await fileBlock(file) : null;
      if (file.size > MAX_FILE) notice.value = texts.chat.tooLarge(file.name);
      else if (block === null) notice.value = texts.chat.notText(file.name);
      else area.current!.value = `${block}\n${area.current!.value}`;
    }
    grow();
    area.current!.focus();
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    void addFiles(event.dataTransfer?.files ?? []);
  };
  return (
    <div
      class={`composer${dropping ? " dropping" : ""}`}
      onDragOver={(event) => (event.preventDefault(), setDropping(true))}
      onDragLeave={() => setDropping(false)}
      onDrop={onDrop}
    >
      <div class="column">
        <div class="input-box">
          <textarea ref={area} rows={1} dir="auto" aria-label={texts.chat.inputLabel} placeholder={dropping ? texts.chat.dropHere : texts.chat.placeholder} onInput={grow} onKeyDown={onKey} />
          <div class="input-tools">
            <button type="button" class="quiet" aria-label={texts.chat.attach} title={texts.chat.attach} onClick={() => picker.current!.click()}>
              <Icon name="clip" />
            </button>
            <input ref={picker} type="file" multiple hidden aria-label={texts.chat.attach} onChange={(event) => void addFiles(event.currentTarget.files ?? [])} />
            <SettingsButton />
            <SpeculationPicker />
            <label class="check switch" title={texts.origins.explain}>
              <input type="checkbox" role="switch" checked={preferences.value.origins} onChange={(event) => (preferences.value = { ...preferences.value, origins: event.currentTarget.checked })} />
              {texts.origins.toggle}
            </label>
            <span class="spring" />
            {running ? (
              <button type="button" class="primary round" aria-label={texts.chat.stop} title={texts.chat.stop} onClick={onStop}>
                <Icon name="stop" />
              </button>
            ) : (
              <button type="button" class="primary round" aria-label={texts.chat.send} title={texts.chat.send} onClick={submit}>
                <Icon name="send" />
              </button>
            )}
          </div>
        </div>
      </div>
    </div>
  );
}
