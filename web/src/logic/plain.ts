// What is done to a model's text before anybody sees it. Model text is hostile input. No function here has side effects.

// Characters that change the order in which others are shown ("Trojan source"): embeddings, overrides, isolates, marks.
const BIDI = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

// Each such character as a visible mark, so that what is read is what is there.
export function showBidi(text: string): string {
  return text.replace(BIDI, (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// For the clipboard: without them.
export function withoutBidi(text: string): string {
  return text.replace(BIDI, "");
}

export const MAX_MARKDOWN = 100_000; // characters; longer texts are shown as they are
export const MAX_SHOWN = 200_000; // characters of such a text that are shown at first

// Images that the page shows: of a kind that runs no code, and in the URL itself, so that nothing is loaded.
export function isImageUrl(url: string): boolean {
  return /^data:image\/(png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/]+=*$/.test(url);
}

// Only links that open a page or a mail; everything else (javascript:, data:, …) is no link.
export function safeLink(href: string): string | null {
  const trimmed = href.replace(/[\u0000-\u0020\u007F-\u009F]/g, "");
  return /^(https?:\/\/|mailto:)/i.test(trimmed) ? trimmed : null;
}
