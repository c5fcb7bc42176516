#!/usr/bin/env node
// Puts the numbers of reports that an earlier version has made into this version's page: bench/renew-report.mjs report.html...
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const page = path.join(path.dirname(fileURLToPath(import.meta.url)), "../src/bench/page");
const read = (name) => fs.readFileSync(path.join(page, name), "utf8");
if (process.argv.length < 3) {
  console.error("usage: bench/renew-report.mjs report.html...");
  process.exit(2);
}
for (const file of process.argv.slice(2)) {
  const [library, , data] = [...fs.readFileSync(file, "utf8").matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map((match) => match[1]);
  const parts = { "/*VEGA*/": library, "/*PLOTS*/": read("plots.js"), "/*DATA*/": data };
  let html = read("report.html");
  for (const [place, text] of Object.entries(parts)) html = html.replace(place, () => text);
  fs.writeFileSync(file, html);
  console.log(file);
}
