import { useEffect, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import { showBidi } from "../logic/plain";
import { contextLength, go, preferences, props, serverState, view, type Theme, type View } from "../state";
import { texts } from "../texts";
import { Chat } from "./chat";
import { KeyDialog } from "./key_dialog";
import { Notice } from "./notice";

const VIEWS: View[] = ["chat", "compare", "dashboard"];

export function App() {
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        {texts.skipToContent}
      </a>
      <header class="top">
        <h1 class="brand">
          <img src="page/icon.svg" alt="" width="26" height="26" />
          <span>{texts.appName}</span>
        </h1>
        <nav aria-label={texts.mainNavigation}>
          {VIEWS.map((each) => (
            <a key={each} href={`#/${each}`} class="tab" aria-current={view.value === each ? "page" : undefined} onClick={(event) => (event.preventDefault(), go(each))}>
              {texts.views[each]}
            </a>
          ))}
        </nav>
        <ServerBadge />
        <ThemePicker />
      </header>
      {serverState.value === "gone" && (
        <p class="banner bad" role="alert">
          {texts.server.gone}
        </p>
      )}
      <Notice />
      <main id="main" tabIndex={-1}>
        {view.value === "chat" && <Chat />}
        {view.value === "compare" && <Lazy load={() => import("./compare").then((module) => module.Compare)} />}
        {view.value === "dashboard" && <Lazy load={() => import("./dashboard").then((module) => module.Dashboard)} />}
      </main>
      <KeyDialog />
    </>
  );
}

// A view whose code is loaded when it is first shown.
function Lazy({ load }: { load: () => Promise<ComponentType> }) {
  const [View, setView] = useState<ComponentType | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => void load().then((component) => setView(() => component)).catch(() => setFailed(true)), []);
  if (failed) {
    return (
      <p class="banner bad" role="alert">
        {texts.loadFailed} <button onClick={() => location.reload()}>{texts.reload}</button>
      </p>
    );
  }
  return View ? <View /> : null;
}

function ServerBadge() {
  const known = props.value;
  const state = serverState.value;
  return (
    <p class="server" data-state={state}>
      <span class="dot" aria-hidden="true" />
      <span class="server-name">{known ? showBidi(known.model_alias) : texts.server.connecting}</span>
      {known && <span class="server-slots">{texts.server.slots(known.total_slots, contextLength.value)}</span>}
    </p>
  );
}

function ThemePicker() {
  const themes: Theme[] = ["auto", "light", "dark"];
  return (
    <select class="theme" aria-label={texts.theme.label} value={preferences.value.theme} onChange={(event) => (preferences.value = { ...preferences.value, theme: event.currentTarget.value as Theme })}>
      {themes.map((theme) => (
        <option key={theme} value={theme}>
          {texts.theme[theme]}
        </option>
      ))}
    </select>
  );
}
