// Markdown of a model's answer as HTML that is safe to insert. Three walls: HTML in the text is shown as text, the result
// goes through DOMPurify with a short list of what is allowed, and the server's Content-Security-Policy allows no inline
// code and nothing from elsewhere. Images are never loaded, because loading one tells its server about the reader.
// Texts that cost the parser too much are not rendered (bounded_lexer.ts).
import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { Marked } from "marked";
import { BoundedLexer, TooCostly } from "./bounded_lexer";
import { safeLink, showBidi } from "./plain";

for (const [name, language] of Object.entries({ bash, cpp, css, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml })) {
  hljs.registerLanguage(name, language);
}

// Highlighting costs more than the length of what is highlighted, and the square of the length of a line.
const MAX_HIGHLIGHTED = 40_000; // characters of a text's blocks of code together
const MAX_HIGHLIGHTED_LINE = 2_000;
const MAX_TAGS = 40_000; // in the result

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

let highlighted = 0; // characters, of the text that is being rendered

function mayHighlight(text: string, language: string): boolean {
  if (language === "" || hljs.getLanguage(language) === undefined) return false;
  if (highlighted + text.length > MAX_HIGHLIGHTED || text.split("\n").some((line) => line.length > MAX_HIGHLIGHTED_LINE)) return false;
  highlighted += text.length;
  return true;
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    checkbox: ({ checked }) => (checked ? "☑" : "☐"),
    image: ({ text, href }) => {
      const link = safeLink(href);
      const label = escapeHtml(text || href);
      return link ? `<a href="${escapeHtml(link)}">🖼 ${label}</a>` : `🖼 ${label}`;
    },
    link({ href, tokens }) {
      const inner = this.parser.parseInline(tokens);
      const link = safeLink(href);
      return link ? `<a href="${escapeHtml(link)}">${inner}</a>` : inner;
    },
    code: ({ text, lang }) => {
      const language = (lang ?? "").trim().split(/\s/, 1)[0]!.toLowerCase();
      const html = mayHighlight(text, language) ? hljs.highlight(text, { language, ignoreIllegals: true }).value : escapeHtml(text);
      return `<pre><code class="hljs">${html}</code></pre>`;
    },
  },
});

const ALLOWED = {
  ALLOWED_TAGS: ["a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A" && node.hasAttribute("href")) {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
  if (node.hasAttribute("class") && !/^hljs[\w -]*$/.test(node.getAttribute("class")!)) node.removeAttribute("class");
});

// null: the text would take too long, and is to be shown as it is.
export function renderMarkdown(text: string): string | null {
  highlighted = 0;
  const lexer = new BoundedLexer(marked.defaults);
  try {
    const html = marked.parser(lexer.lex(showBidi(text)));
    return html.split("<").length > MAX_TAGS ? null : DOMPurify.sanitize(html, ALLOWED);
  } catch (error) {
    if (error instanceof TooCostly) return null;
    throw error;
  }
}
