import { useEffect, useRef, useState } from "preact/hooks";
import { keyDialog, useKey } from "../state";
import { texts } from "../texts";

export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [key, setKey] = useState("");
  const [forGood, setForGood] = useState(false);
  const state = keyDialog.value;
  useEffect(() => {
    if (state === "closed") dialog.current?.close();
    else if (!dialog.current?.open) dialog.current?.showModal();
  }, [state]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (key.trim()) void useKey(key.trim(), forGood);
  };
  return (
    <dialog ref={dialog} class="card" aria-labelledby="key-title" onClose={() => (keyDialog.value = "closed")}>
      <form onSubmit={submit}>
        <h2 id="key-title">{texts.key.title}</h2>
        {state === "wrong" && <p class="bad-text" role="alert">{texts.key.wrong}</p>}
        <label>
          {texts.key.label}
          <input type="password" autocomplete="current-password" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={forGood} onChange={(event) => setForGood(event.currentTarget.checked)} />
          {texts.key.remember}
        </label>
        <p class="hint">{texts.key.explain}</p>
        <button class="primary" type="submit">{texts.key.submit}</button>
      </form>
    </dialog>
  );
}
