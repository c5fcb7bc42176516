// The plots of a bench report, as Vega-Lite specifications: report.html draws them in a browser, bench/plots.mjs as files.
// `report` is what report.h makes; a report of an earlier version will do.

// The report with all fields that plots and page read: earlier versions did not have some of them, and named others otherwise.
function completed(report) {
  const positions = (report.places ?? []).map(({ place, chance, asked, ...rest }) => ({ ...rest, position: place, probability: chance, observations: asked }));
  const lists = ["variants", "speed_ups", "speeds", "parity", "concurrency_parity", "latency", "requests", "curve", "stages", "lengths", "predictions"];
  const timeline = report.timeline && { ...report.timeline, tokens: report.timeline.tokens.map((token) => ({ ...token, drafter: token.drafter === "nobody" ? "none" : token.drafter })) };
  return { title: "Outrider bench", positions, ...Object.fromEntries(lists.map((name) => [name, []])), ...report, timeline };
}

// The text in lines that fit into a plot.
function broken(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length > width / 8) lines.push(word);
    else lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

// `width` in pixels; `dark`: for a dark background.
function plots(given, { width = 620, dark = false } = {}) {
  const report = completed(given);
  const colours = dark ? { text: "#e7ecf0", soft: "#a3b0bb", line: "#2e3943", axis: "#6b7885", card: "#181f26" } : { text: "#333", soft: "#666", line: "#e8e8e8", axis: "#999", card: "white" };
  const narrow = width < 500; // two pictures side by side do not fit
  const half = narrow ? width - 20 : Math.round(width / 2) - 20;
  const beside = narrow ? "vconcat" : "hconcat";
  const palette = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#bab0ac"];
  const others = report.variants.filter((name) => name !== report.variants[0]);
  const schema = "https://vega.github.io/schema/vega-lite/v5.json";
  const config = {
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { gridColor: colours.line, domainColor: colours.axis, tickColor: colours.axis, labelColor: colours.text, titleColor: colours.text, labelLimit: narrow ? 90 : 180 },
    legend: { labelLimit: 0, labelColor: colours.text, titleColor: colours.text, symbolBaseStrokeColor: colours.text, ...(narrow && { orient: "bottom", columns: 2 }) },
    title: { anchor: "start", fontSize: 15, color: colours.text, subtitleColor: colours.soft, limit: 0 },
    background: colours.card,
  };
  const variantColour = (shown) => ({ field: "variant", type: "nominal", title: null, scale: { domain: report.variants, range: palette }, legend: { values: shown } });
  const make = (id, title, subtitle, rest) => ({
    id,
    spec: { $schema: schema, title: { text: narrow ? broken(title, width) : title, subtitle: narrow ? [subtitle].flat().flatMap((line) => broken(line, width)) : subtitle }, width: narrow ? width - 110 : width, config, ...rest },
  });
  const result = [];

  const slices = [...new Set(report.speed_ups.map((row) => row.slice))];
  const widest = Math.max(1.1, ...report.speed_ups.map((row) => Math.max(row.median, row.high ?? 0)));
  result.push(
    make("speed-up", `Speed-up over ${report.variants[0]}`, "Median of paired ratios; lines: 95 % confidence; 1 = as fast", {
      data: { values: report.speed_ups },
      height: { step: others.length > 1 ? 14 : 22 },
      encoding: {
        y: { field: "slice", type: "nominal", sort: slices, title: null },
        ...(others.length > 1 && { yOffset: { field: "variant", sort: others } }),
      },
      layer: [
        {
          mark: { type: "bar", cornerRadiusEnd: 2 },
          encoding: {
            x: { field: "median", type: "quantitative", title: "times as fast", scale: { domain: [0, widest], nice: true } },
            color: variantColour(others),
            tooltip: ["variant", "slice", "median", "low", "high", "p10", "p90", "count"].map((field) => ({ field, format: field === "count" ? "" : undefined })),
          },
        },
        { mark: { type: "rule", strokeWidth: 1.5, color: colours.text }, encoding: { x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
        { data: { values: [{ one: 1 }] }, mark: { type: "rule", strokeDash: [4, 3], color: colours.text }, encoding: { x: { field: "one", type: "quantitative" }, y: null, yOffset: null } },
      ],
    }),
  );

  if (report.requests.some((row) => row.acceptance !== null)) {
    result.push(
      make("acceptance", "Each answer: how many draft tokens were accepted, and the speed-up", "Below the dashed line drafting made the answer slower", {
        height: 320,
        layer: [
          {
            data: { values: report.requests.filter((row) => row.acceptance !== null && row.speed_up !== null) },
            mark: { type: "point", filled: true, size: 55, opacity: 0.75 },
            encoding: {
              x: { field: "acceptance", type: "quantitative", title: "draft tokens accepted", axis: { format: "%" }, scale: { domain: [0, 1] } },
              y: { field: "speed_up", type: "quantitative", title: "times as fast", scale: { zero: true } },
              color: variantColour(others),
              shape: { field: "category", type: "nominal", title: null },
              tooltip: ["variant", "category", "prompt", "acceptance", "speed_up", "tokens_per_second"].map((field) => ({ field })),
            },
          },
          { data: { values: [{ one: 1 }] }, mark: { type: "rule", strokeDash: [4, 3], color: colours.text }, encoding: { y: { field: "one", type: "quantitative" } } },
        ],
      }),
    );
  }

  if (report.curve.length > 0) {
    const rows = { field: "rows", type: "quantitative", title: "rows of a step (draft + 1)", axis: { tickMinStep: 1 } };
    result.push(
      make("cost-curve", "The time of a step, and the speed it gives", ["Left: median of the steps, with quartiles.", "Right: speed with drafts of that length, computed from the measured acceptance; ● the best."], {
        width: undefined,
        [beside]: [
          {
            width: half,
            height: 260,
            data: { values: report.curve },
            encoding: { x: rows, color: variantColour(report.variants) },
            layer: [
              { mark: { type: "rule", opacity: 0.5 }, encoding: { y: { field: "low", type: "quantitative", title: "ms" }, y2: { field: "high" } } },
              { mark: { type: "line", point: true }, encoding: { y: { field: "ms", type: "quantitative", title: "ms", scale: { zero: true } }, tooltip: ["variant", "rows", "ms", "count"].map((field) => ({ field })) } },
            ],
          },
          {
            width: half,
            height: 260,
            data: { values: report.curve.filter((row) => row.tokens_per_second !== null) },
            encoding: { x: rows, y: { field: "tokens_per_second", type: "quantitative", title: "tokens per second", scale: { zero: true } }, color: variantColour(report.variants) },
            layer: [
              { mark: { type: "line" } },
              { transform: [{ filter: "datum.best" }], mark: { type: "point", filled: true, size: 90 }, encoding: { tooltip: ["variant", "rows", "tokens_per_second"].map((field) => ({ field })) } },
            ],
          },
        ],
      }),
    );
  }

  if (report.stages.length > 0) {
    const order = ["prefill", "draft", "verify", "sample", "rollback", "wait"];
    result.push(
      make("stages", "Where the time goes", "Milliseconds for each generated token; wait: queue and network", {
        data: { values: report.stages },
        height: { step: 26 },
        mark: "bar",
        encoding: {
          y: { field: "variant", type: "nominal", sort: report.variants, title: null },
          x: { field: "ms", type: "quantitative", title: "ms per token", stack: "zero" },
          color: { field: "stage", type: "nominal", title: null, sort: order, scale: { domain: order, range: palette } },
          order: { field: "order", type: "quantitative" },
          tooltip: ["variant", "stage", "ms"].map((field) => ({ field })),
        },
      }),
    );
  }

  if (report.positions.length > 0) {
    result.push(
      make("positions", "Acceptance at each position of a draft, and accepted lengths", "Left: the probability that a token is accepted if all before it were. Right: accepted lengths", {
        width: undefined,
        [beside]: [
          {
            width: half,
            height: 220,
            data: { values: report.positions },
            mark: { type: "line", point: true },
            encoding: {
              x: { field: "position", type: "quantitative", title: "position in the draft", axis: { tickMinStep: 1 } },
              y: { field: "probability", type: "quantitative", title: "accepted", axis: { format: "%" }, scale: { domain: [0, 1] } },
              color: { field: "drafter", type: "nominal", title: null },
              ...(others.length > 1 && { strokeDash: { field: "variant", type: "nominal", title: null } }),
              tooltip: ["variant", "drafter", "position", "probability", "observations"].map((field) => ({ field })),
            },
          },
          {
            width: half,
            height: 220,
            data: { values: report.lengths },
            mark: "bar",
            encoding: {
              x: { field: "length", type: "ordinal", title: "tokens accepted" },
              y: { field: "count", type: "quantitative", aggregate: "sum", title: "drafts" },
              color: { field: "drafter", type: "nominal", title: null },
              tooltip: [{ field: "drafter" }, { field: "length" }, { field: "count", aggregate: "sum" }],
            },
          },
        ],
      }),
    );
  }

  if (report.timeline) {
    result.push(
      make("timeline", "One answer, token by token", `${report.timeline.variant}, prompt ${report.timeline.prompt + 1}: each bar is a step; the tokens of one step came together because a drafter proposed them`, {
        data: { values: report.timeline.tokens },
        height: { step: 15 },
        mark: { type: "bar", height: 12 },
        encoding: {
          y: { field: "line", type: "ordinal", title: null, axis: null },
          x: { field: "start", type: "quantitative", title: "ms since the first token, of each line", axis: { grid: false } },
          x2: { field: "end" },
          color: { field: "drafter", type: "nominal", title: "proposed by" },
          tooltip: ["text", "drafter", "at"].map((field) => ({ field })),
        },
      }),
    );
  }
  return result;
}

if (typeof module !== "undefined") module.exports = { plots, completed };
