// Model text is hostile input: whatever it holds, no code of its own may run and nothing may be loaded.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { renderMarkdown } from "../src/logic/markdown";
import { MAX_MARKDOWN, safeLink, showBidi, withoutBidi } from "../src/logic/plain";

function rendered(text: string): string {
  const html = renderMarkdown(text);
  if (html === null) throw new Error("too costly");
  return html;
}

function elements(text: string): Element[] {
  const box = document.createElement("div");
  box.innerHTML = rendered(text);
  return [...box.querySelectorAll("*")];
}

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg onload=alert(1)><a href='javascript:alert(1)'>x</a></svg>",
  "<iframe src='https://example.org'></iframe>",
  "<style>body{display:none}</style>",
  "<form action='https://example.org'><input name=q><button>go</button></form>",
  "<a href='javascript:alert(1)' onclick='alert(1)'>x</a>",
  "<div style='position:fixed;inset:0'>x</div>",
  "<math><mtext></p><style><img src=x onerror=alert(1)></style></mtext></math>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](vbscript:x)",
  "![x](https://example.org/track.png)",
  "![x](javascript:alert(1))",
  "<object data=x></object><embed src=x><base href='https://example.org'>",
  "```html\n<script>alert(1)</script>\n```",
  "```\"><script>alert(1)</script>\nx\n```",
  "| a |\n|---|\n| <script>alert(1)</script> |",
  "[x]: javascript:alert(1)\n\n[x]",
  "<a id=app name=body>clobber</a>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "<p class='tile' id='main'>x</p>",
];

describe("hostile text", () => {
  it.each(HOSTILE)("%s", (text) => {
    expect(rendered(text).replace(/<[^>]*>/g, "").trim()).not.toBe(""); // shown, not swallowed
    for (const element of elements(text)) {
      expect(["SCRIPT", "IFRAME", "STYLE", "FORM", "INPUT", "BUTTON", "IMG", "SVG", "MATH", "OBJECT", "EMBED", "BASE", "DIV"]).not.toContain(element.tagName.toUpperCase());
      for (const { name, value } of element.attributes) {
        expect(["href", "class", "target", "rel", "start", "align"]).toContain(name);
        if (name === "href") expect(value).toMatch(/^(https?:\/\/|mailto:)/);
        if (name === "class") expect(value).toMatch(/^hljs/);
      }
    }
  });

  it("shows HTML as text", () => {
    const box = document.createElement("div");
    box.innerHTML = rendered("a <b>bold</b> claim");
    expect(box.textContent!.trim()).toBe("a <b>bold</b> claim");
  });

  it("makes direction overrides visible and keeps them off the clipboard", () => {
    const text = "if (admin\u202E\u2066// check\u2069\u2066) {";
    expect(renderMarkdown(text)).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    expect(showBidi(text)).toContain("⟨U+202E⟩");
    expect(withoutBidi(text)).toBe("if (admin// check) {");
  });

  // Shapes for which the parser takes seconds or minutes, or runs out of stack.
  const COSTLY = {
    "links that are not closed": "[a](".repeat(4_000),
    "brackets that are not closed": "[".repeat(20_000),
    "images that are not closed": "![".repeat(10_000),
    "emphasis that is not closed": "*a ".repeat(10_000),
    "nested emphasis": "**a *b ".repeat(5_000),
    "strikes that are not closed": "~~a ".repeat(10_000),
    "code that is not closed": "`a``".repeat(10_000),
    "tags that are not closed": "<a b=".repeat(10_000),
    "quotes in each other": "> ".repeat(500) + "deep",
    "lists in each other": "- ".repeat(500) + "deep",
    "a table of many rows": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n".repeat(9_000),
    "the beginnings of many tables": "&#| a | b |\n|---|---|\n|-|\n".repeat(3_500),
    "definitions of links": Array.from({ length: 4_000 }, (_, i) => `[a${i}]: b\n`).join("") + "\n[a1]".repeat(1_000),
    "lists and underlines": "1. =\n*".repeat(15_000),
    "addresses": "'www.".repeat(15_000),
  };
  it.each(Object.entries(COSTLY))("that is costly is left as it is: %s", (_name, text) => {
    expect(text.length).toBeLessThan(MAX_MARKDOWN); // so that length alone does not save us
    expect(renderMarkdown(text)).toBeNull();
  });

  it("is highlighted only as far as that is cheap", () => {
    expect(rendered("```javascript\n" + "a1e".repeat(10_000) + "\n```")).not.toContain("hljs-");
    expect(rendered("```rust\n" + 'let a = "b";\n'.repeat(4_000) + "```")).not.toContain("hljs-");
    expect(rendered("```rust\n" + 'let a = "b";\n'.repeat(100) + "```\n\n```rust\n" + 'let a = "b";\n'.repeat(3_500) + "```").match(/hljs-keyword/g)).toHaveLength(100);
  });

  it("with too many elements is left as it is", () => {
    expect(renderMarkdown(("|a".repeat(300) + "\n" + "|-".repeat(300) + "\n" + "|a".repeat(300) + "\n").repeat(40))).toBeNull();
  });
});

describe("ordinary text", () => {
  it("is rendered up to the greatest length", () => {
    const paragraph = "A paragraph with **bold words**, `code`, [a link](https://example.org) and an *emphasis* (or two), which goes on for a while. ".repeat(4);
    const piece = `## A heading\n\n${paragraph}\n\n- one item\n- another, with \`code\`\n  1. nested\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n\`\`\`python\ndef f(x):\n    return x + 1\n\`\`\`\n\n`;
    const text = piece.repeat(Math.floor(MAX_MARKDOWN / piece.length));
    expect(rendered(text).match(/<h2>/g)!.length).toBe(Math.floor(MAX_MARKDOWN / piece.length));
    for (const name of ["README.md", "docs/SPECULATION.md", "docs/COMPATIBILITY.md", "docs/ARCHITECTURE.md"]) {
      expect(rendered(readFileSync(`../${name}`, "utf8")), name).toMatch(/^<h1>/);
    }
  });
  it("renders markdown", () => {
    expect(renderMarkdown("**bold** and `code`")).toContain("<strong>bold</strong> and <code>code</code>");
    expect(renderMarkdown("| a |\n|---|\n| 1 |")).toContain("<td>1</td>");
    expect(renderMarkdown("- [x] done")).toContain("☑ done");
  });
  it("highlights code of known languages and leaves other code alone", () => {
    expect(renderMarkdown("```python\ndef f(): pass\n```")).toContain('class="hljs-keyword"');
    expect(renderMarkdown("```klingon\ndef\n```")).toContain("def");
  });
  it("opens links elsewhere without telling where they were clicked", () => {
    expect(renderMarkdown("[x](https://example.org/a?b=c&d)")).toContain('href="https://example.org/a?b=c&amp;d"');
    expect(renderMarkdown("[x](https://example.org)")).toContain('rel="noopener noreferrer nofollow"');
  });
  it("knows which links are safe", () => {
    expect(safeLink("https://example.org")).toBe("https://example.org");
    expect(safeLink("mailto:a@example.org")).toBe("mailto:a@example.org");
    for (const link of ["//example.org", "/metrics", "javascript:x", " java\nscript:x", "file:///etc/passwd", ""]) expect(safeLink(link)).toBeNull();
  });
});
