import { showBidi } from "../logic/plain";
import { notice } from "../state";
import { texts } from "../texts";

// A sentence about something that has happened; stays until it is closed.
export function Notice() {
  if (!notice.value) return null;
  return (
    <p class="banner" role="status">
      {showBidi(notice.value)} <button class="quiet" onClick={() => (notice.value = "")}>{texts.settings.close}</button>
    </p>
  );
}
