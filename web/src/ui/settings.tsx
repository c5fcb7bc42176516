import { useRef, useState } from "preact/hooks";
import type { Settings } from "../logic/types";
import { current, draftSystem, preferences, props, setSystem, settings } from "../state";
import { texts } from "../texts";
import { Icon } from "./icons";

const NUMBERS = [
  { name: "temperature", min: 0, max: 100, step: 0.05 },
  { name: "top_p", min: 0, max: 1, step: 0.01 },
  { name: "top_k", min: 0, max: 100000, step: 1 },
  { name: "min_p", min: 0, max: 1, step: 0.01 },
  { name: "repeat_penalty", min: 0.01, max: 100, step: 0.01 },
  { name: "max_tokens", min: 1, max: 1000000, step: 1 },
  { name: "seed", min: 0, max: 2 ** 53 - 1, step: 1 },
] as const;

export function SettingsButton() {
  const dialog = useRef<HTMLDialogElement>(null);
  const changed = Object.values(settings.value).some((value) => value !== undefined && value.length !== 0) || Boolean(current.value?.system ?? draftSystem.value);
  const label = changed ? texts.settings.changed : texts.settings.open;
  return (
    <>
      <button type="button" class={`quiet${changed ? " changed" : ""}`} aria-label={label} title={label} onClick={() => dialog.current!.showModal()}>
        <Icon name="gear" />
      </button>
      <dialog ref={dialog} class="card wide" aria-labelledby="settings-title">
        <SettingsForm onClose={() => dialog.current!.close()} />
      </dialog>
    </>
  );
}

function SettingsForm({ onClose }: { onClose: () => void }) {
  const put = (change: Settings) => (settings.value = { ...settings.value, ...change });
  const system = current.value?.system ?? draftSystem.value;
  return (
    <div class="settings">
      <div class="row">
        <h2 id="settings-title">{texts.settings.title}</h2>
        <span class="spring" />
        <button type="button" class="quiet" onClick={onClose}>{texts.settings.close}</button>
      </div>
      <label>
        {texts.settings.system}
        <textarea rows={3} dir="auto" value={system} onChange={(event) => setSystem(event.currentTarget.value)} />
        <span class="hint">{texts.settings.systemHint}</span>
      </label>
      <div class="grid">
        {NUMBERS.map((field) => (
          <NumberField key={field.name} {...field} value={settings.value[field.name]} onChange={(value) => put({ [field.name]: value })} />
        ))}
      </div>
      <label>
        {texts.settings.stop}
        <textarea rows={2} value={(settings.value.stop ?? []).join("\n")} onChange={(event) => put({ stop: event.currentTarget.value.split("\n").filter(Boolean) })} />
        <span class="hint">{texts.settings.stopHint}</span>
      </label>
      <JsonField name="schema" />
      <JsonField name="tools" />
      <label class="check">
        <input type="checkbox" checked={preferences.value.details} onChange={(event) => (preferences.value = { ...preferences.value, details: event.currentTarget.checked })} />
        {texts.settings.details}
      </label>
      <span class="hint">{texts.settings.detailsHint}</span>
      <button type="button" onClick={() => (settings.value = {})}>{texts.settings.reset}</button>
    </div>
  );
}

function NumberField({ name, min, max, step, value, onChange }: (typeof NUMBERS)[number] & { value: number | undefined; onChange: (value: number | undefined) => void }) {
  const preset = props.value?.default_generation_settings.params[name];
  const shown = name !== "seed" && typeof preset === "number" && preset >= 0 ? texts.settings.default(String(Math.round(preset * 1e4) / 1e4)) : "";
  const read = (input: HTMLInputElement) => {
    const number = input.valueAsNumber;
    onChange(Number.isNaN(number) ? undefined : Math.min(max, Math.max(min, number)));
  };
  return (
    <label>
      {texts.settings[name]}
      <input type="number" min={min} max={max} step={step} value={value ?? ""} placeholder={shown} onChange={(event) => read(event.currentTarget)} />
      <span class="hint">{texts.settings[`${name}Hint`]}</span>
    </label>
  );
}

// A field for JSON: what cannot be read is not sent.
function JsonField({ name }: { name: "schema" | "tools" }) {
  const [wrong, setWrong] = useState(false);
  const read = (text: string) => {
    try {
      if (text.trim()) JSON.parse(text);
      setWrong(false);
      settings.value = { ...settings.value, [name]: text.trim() || undefined };
    } catch {
      setWrong(true);
    }
  };
  return (
    <label>
      {texts.settings[name]}
      <textarea rows={2} class="code" spellcheck={false} aria-invalid={wrong} value={settings.value[name] ?? ""} onChange={(event) => read(event.currentTarget.value)} />
      <span class={wrong ? "hint bad-text" : "hint"}>{wrong ? texts.settings.notJson : texts.settings[`${name}Hint`]}</span>
    </label>
  );
}
