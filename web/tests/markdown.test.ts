// Model text is hostile input: whatever it holds, no code of its own may run and nothing may be loaded.
import { describe, expect, it } from "vitest";
import { renderMarkdown } from "../src/logic/markdown";
import { safeLink, showBidi, withoutBidi } from "../src/logic/plain";

function elements(text: string): Element[] {
  const box = document.createElement("div");
  box.innerHTML = renderMarkdown(text);
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
    box.innerHTML = renderMarkdown("a <b>bold</b> claim");
    expect(box.textContent!.trim()).toBe("a <b>bold</b> claim");
  });

  it("makes direction overrides visible and keeps them off the clipboard", () => {
    const text = "if (admin\u202E\u2066// check\u2069\u2066) {";
    expect(renderMarkdown(text)).not.toMatch(/[\u202A-\u202E\u2066-\u2069]/);
    expect(showBidi(text)).toContain("⟨U+202E⟩");
    expect(withoutBidi(text)).toBe("if (admin// check) {");
  });

  it("survives large input in reasonable time", () => {
    const begun = performance.now();
    renderMarkdown("| a | b |\n|---|---|\n" + "| 1 | 2 |\n".repeat(5000));
    renderMarkdown("x".repeat(100_000));
    renderMarkdown("*".repeat(20_000));
    renderMarkdown("[".repeat(5_000));
    renderMarkdown("> ".repeat(500) + "deep");
    expect(performance.now() - begun).toBeLessThan(60_000);
  });
});

describe("ordinary text", () => {
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
