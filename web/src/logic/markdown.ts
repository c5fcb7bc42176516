// Markdown of a model's answer as HTML that is safe to insert. Three walls: HTML in the text is shown as text, the result
// goes through DOMPurify with a short list of what is allowed, and the server's Content-Security-Policy allows no inline
// code and nothing from elsewhere. Images are never loaded, because loading one tells its server about the reader.
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
import { safeLink, showBidi } from "./plain";

for (const [name, language] of Object.entries({ bash, cpp, css, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml })) {
  hljs.registerLanguage(name, language);
}

const MAX_HIGHLIGHTED = 50_000; // characters of one block of code

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
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
      const known = language !== "" && hljs.getLanguage(language) !== undefined && text.length <= MAX_HIGHLIGHTED;
      const html = known ? hljs.highlight(text, { language, ignoreIllegals: true }).value : escapeHtml(text);
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

export function renderMarkdown(text: string): string {
  const html = marked.parse(showBidi(text), { async: false });
  return DOMPurify.sanitize(html, ALLOWED);
}
