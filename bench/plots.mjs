#!/usr/bin/env node
// The plots of a report as SVG files: bench/plots.mjs report.html FOLDER. Everything it needs is in the page. (In a browser, the menu at
// each plot saves it as SVG or PNG.)
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [page, folder] = process.argv.slice(2);
if (!page || !folder) {
  console.error("usage: bench/plots.mjs report.html FOLDER");
  process.exit(2);
}
const html = fs.readFileSync(page, "utf8");
const scripts = [...html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map((match) => match[1]);
const [library, plotting, data] = scripts;
vm.runInThisContext(library);
vm.runInThisContext(plotting);
const { vega, vegaLite, plots } = globalThis;
fs.mkdirSync(folder, { recursive: true });
for (const { id, spec } of plots(JSON.parse(data))) {
  const view = new vega.View(vega.parse(vegaLite.compile(spec).spec), { renderer: "none" });
  const file = path.join(folder, `${id}.svg`);
  fs.writeFileSync(file, await view.toSVG());
  console.log(file);
}
