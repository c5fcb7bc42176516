import { useRef, useState } from "preact/hooks";
import { isImageUrl, showBidi } from "../logic/plain";
import type { Image } from "../logic/types";
import { notice, preferences, props } from "../state";
import { texts } from "../texts";
import { fileSize } from "./format";
import { Icon } from "./icons";
import { SettingsButton } from "./settings";
import { SpeculationPicker } from "./speculation";

const MAX_FILE = 256 * 1024;
const MAX_IMAGE = 10 * 1024 * 1024;
const AS_IT_IS = ["image/png", "image/jpeg"]; // other kinds are sent as PNG: not every server reads them

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

async function readImage(file: File): Promise<Image | null> {
  try {
    const bitmap = await createImageBitmap(file); // fails if it is no image
    const url = AS_IT_IS.includes(file.type) ? await dataUrl(file) : pngUrl(bitmap);
    bitmap.close();
    return isImageUrl(url) ? { name: file.name, url } : null;
  } catch {
    return null;
  }
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function pngUrl(bitmap: ImageBitmap): string {
  const canvas = document.createElement("canvas");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
  return canvas.toDataURL("image/png");
}

export function Composer({ running, onSend, onStop }: { running: boolean; onSend: (text: string, images: Image[]) => void; onStop: () => void }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [dropping, setDropping] = useState(false);
  const [images, setImages] = useState<Image[]>([]);
  const sees = props.value?.modalities?.vision === true;
  const attach = sees ? texts.chat.attachImages : texts.chat.attach;

  // The text lives in the element: a key that is typed draws nothing but the element itself.
  const grow = () => {
    const box = area.current!;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, innerHeight * 0.4)}px`;
  };
  const submit = () => {
    const text = area.current!.value.trim();
    if ((!text && images.length === 0) || running) return;
    area.current!.value = "";
    setImages([]);
    grow();
    onSend(text, images);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  const addFiles = async (files: Iterable<File>) => {
    for (const file of files) {
      const isImage = sees && file.type.startsWith("image/");
      const limit = isImage ? MAX_IMAGE : MAX_FILE;
      if (file.size > limit) {
        notice.value = texts.chat.tooLarge(file.name, fileSize(limit));
      } else if (isImage) {
        const image = await readImage(file);
        if (image) setImages((before) => [...before, image]);
        else notice.value = texts.chat.notTextOrImage(file.name);
      } else {
        const block = await fileBlock(file);
        if (block === null) notice.value = sees ? texts.chat.notTextOrImage(file.name) : texts.chat.notText(file.name);
        else area.current!.value = `${block}\n${area.current!.value}`;
      }
    }
    grow();
    area.current!.focus();
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void addFiles(files);
  };
  const pick = async (input: HTMLInputElement) => {
    await addFiles([...(input.files ?? [])]);
    input.value = ""; // so that the same file can be picked again
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
          {images.length > 0 && (
            <ul class="pictures" aria-label={texts.chat.images}>
              {images.map((image, i) => (
                <li key={i}>
                  <img src={image.url} alt={showBidi(image.name)} />
                  <button type="button" class="quiet small" aria-label={texts.chat.removeImage(showBidi(image.name))} onClick={() => setImages(images.filter((each) => each !== image))}>
                    <Icon name="trash" />
                  </button>
                </li>
              ))}
            </ul>
          )}
          <textarea ref={area} rows={1} dir="auto" aria-label={texts.chat.inputLabel} placeholder={dropping ? (sees ? texts.chat.dropImagesHere : texts.chat.dropHere) : texts.chat.placeholder} onInput={grow} onKeyDown={onKey} onPaste={onPaste} />
          <div class="input-tools">
            <button type="button" class="quiet" aria-label={attach} title={attach} onClick={() => picker.current!.click()}>
              <Icon name="clip" />
            </button>
            <input ref={picker} type="file" multiple hidden aria-label={attach} onChange={(event) => void pick(event.currentTarget)} />
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
