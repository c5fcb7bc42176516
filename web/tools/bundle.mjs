// Packs dist/ into one file for src/http/page.h: a line of JSON that lists the files, then for each of them its bytes
// and the same compressed. Fails if what a browser loads is larger than the page may be.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const MAX_GZIPPED = 300_000;
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const folder = new URL("../dist/", import.meta.url).pathname;
const names = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
  .sort();

const list = [];
const parts = [];
for (const name of names) {
  const type = TYPES[extname(name)];
  if (!type) throw new Error(`${name}: no type is known for such a file`);
  const bytes = readFileSync(join(folder, name));
  const gzip = gzipSync(bytes, { level: 9 });
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}"`;
  list.push({ path: name === "index.html" ? "/" : `/${name}`, type, etag, size: bytes.length, gzip: gzip.length });
  parts.push(bytes, gzip);
}
const gzipped = list.reduce((sum, file) => sum + file.gzip, 0);
if (gzipped > MAX_GZIPPED) throw new Error(`the page has ${gzipped} bytes gzipped, more than ${MAX_GZIPPED}`);
writeFileSync(join(folder, "../page.bundle"), Buffer.concat([Buffer.from(JSON.stringify(list) + "\n"), ...parts]));
console.log(`${list.length} files, ${gzipped} bytes gzipped`);
