import { props, speculation } from "../state";
import type { Speculation } from "../logic/types";
import { showBidi } from "../logic/plain";
import { texts } from "../texts";

// Off, auto, or some of the server's drafters, for the messages that follow.
export function SpeculationPicker() {
  const known = props.value?.drafters ?? [];
  const { mode, drafters } = speculation.value;
  const choose = (next: Partial<Speculation>) => (speculation.value = { ...speculation.value, ...next });
  const toggle = (name: string) => choose({ drafters: drafters.includes(name) ? drafters.filter((each) => each !== name) : [...drafters, name] });
  return (
    <span class="speculation">
      <label>
        <span class="label-text">{texts.speculation.label}</span>
        <select value={mode} onChange={(event) => choose({ mode: event.currentTarget.value as Speculation["mode"], drafters: drafters.length > 0 ? drafters : [...known] })}>
          <option value="auto">{texts.speculation.auto}</option>
          <option value="off">{texts.speculation.off}</option>
          {known.length > 0 && <option value="pick">{texts.speculation.pick}</option>}
        </select>
      </label>
      {mode === "pick" && (
        <span class="drafters" role="group" aria-label={texts.speculation.drafters}>
          {known.map((name) => (
            <label class="check" key={name}>
              <input type="checkbox" checked={drafters.includes(name)} onChange={() => toggle(name)} />
              {showBidi(name)}
            </label>
          ))}
        </span>
      )}
    </span>
  );
}
