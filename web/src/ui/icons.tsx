// Small line icons. They are decoration: every button has a label of its own.
const PATHS = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 6h16M4 12h16M4 18h16",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  pencil: "M4 20l1-4L16 5l3 3L8 19z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 12l5 5 9-10",
  redo: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  gear: "M4 7h9M17 7h3M4 17h3M11 17h9M13 4v6M7 14v6",
  send: "M5 12h14M13 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  clip: "M8 12V7a4 4 0 0 1 8 0v9a2.5 2.5 0 0 1-5 0V8",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  seed: "M12 21V11M12 11c0-4 3-6 7-6 0 4-3 6-7 6zM12 14c0-3-2-5-6-5 0 4 2 5 6 5z",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 12h16",
};

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[name]} />
    </svg>
  );
}
