// uPlot in a card that follows the width of the page and the theme's colours.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { preferences } from "../state";
import { texts } from "../texts";
import { short } from "./format";

export interface Series {
  label: string;
  color: string; // name of a CSS variable
  fill?: boolean;
  bars?: boolean;
  dots?: boolean;
  band?: boolean; // an edge of a band: thin, without points
}

interface ChartProps {
  title: string;
  series: Series[];
  data: uPlot.AlignedData;
  xLabels?: string[]; // for bars: the name of each place
  yRange?: [number, number];
  xTitle?: string; // of the table
  unit?: (value: string) => string;
  bands?: uPlot.Band[];
  time?: boolean; // x is seconds before now
}

const HEIGHT = 180;
const TIME_SHOWN = 60; // seconds
const TABLE_ROWS = 24; // the newest, where x is time

const plainNumber = (value: string) => value;

// The value that a colour of style.css has in the present theme.
function cssColor(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export function Chart({ title, series, data, xLabels, yRange, xTitle, unit = plainNumber, bands, time }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = JSON.stringify([series, xLabels, yRange, preferences.value.theme]);

  useLayoutEffect(() => {
    const text = cssColor("--text-soft");
    const grid = { stroke: cssColor("--line"), width: 1 };
    const options: uPlot.Options = {
      width: box.current!.clientWidth,
      height: HEIGHT,
      cursor: { show: false },
      legend: { show: false },
      padding: [8, 12, 0, 0],
      scales: {
        x: { time: false, range: xLabels ? [-0.6, xLabels.length - 0.4] : time ? [-TIME_SHOWN, 0] : undefined },
        y: { range: yRange ?? ((_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1]) },
      },
      axes: [
        {
          stroke: text,
          grid: { show: false },
          ticks: { show: false },
          size: 28,
          font: "12px system-ui",
          splits: xLabels ? () => xLabels.map((_, i) => i) : undefined,
          values: (_plot, values) => values.map((value) => (xLabels ? (xLabels[value] ?? "") : time ? (value === 0 ? "" : texts.dashboard.seconds(`${value}`)) : `${value}`)),
        },
        { stroke: text, grid, ticks: { show: false }, size: 64, font: "12px system-ui", values: (_plot, values) => values.map((value) => unit(`${Number(value.toPrecision(3))}`)) },
      ],
      bands: bands?.map((band) => ({ ...band, fill: cssColor("--band") })),
      series: [
        {},
        ...series.map(
          (each): uPlot.Series => ({
            label: each.label,
            stroke: cssColor(each.color),
            width: each.band ? 0 : each.dots ? 0 : 2,
            fill: each.fill || each.bars ? cssColor("--band") : undefined,
            paths: each.bars ? uPlot.paths.bars!({ size: [0.7, 48] }) : each.dots ? () => null : undefined,
            points: each.dots ? { show: true, size: 12, fill: cssColor(each.color) } : { show: false },
            spanGaps: true,
          }),
        ),
      ],
    };
    plot.current = new uPlot(options, data, box.current!);
    return () => plot.current?.destroy();
  }, [shape]);

  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry!.contentRect.width);
      if (plot.current && Math.abs(plot.current.width - width) > 1) plot.current.setSize({ width, height: HEIGHT });
    });
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  const shown = (value: number | null | undefined) => (value === null || value === undefined ? "" : unit(short(value)));
  return (
    <>
      <div ref={box} class="chart" role="img" aria-label={`${title}: ${describe(series, data, xLabels, shown)}`} />
      <Table series={series} data={data} xLabels={xLabels} xTitle={time ? texts.dashboard.agoColumn : (xTitle ?? title)} time={time} shown={shown} />
    </>
  );
}

type Shown = (value: number | null | undefined) => string;

// In words, what the picture shows.
function describe(series: Series[], data: uPlot.AlignedData, xLabels: string[] | undefined, shown: Shown): string {
  if (xLabels) return xLabels.map((label, i) => texts.dashboard.bar(label, shown(data[1]![i]))).join(", ");
  const lines = series.flatMap((each, i) => {
    const values = [...data[i + 1]!].filter((value) => value !== null && value !== undefined);
    if (each.band || values.length === 0) return [];
    return [each.dots ? texts.dashboard.bar(each.label, shown(values.at(-1))) : texts.dashboard.line(each.label, shown(values.at(-1)), shown(Math.min(...values)), shown(Math.max(...values)))];
  });
  return lines.join("; ") || texts.dashboard.nothingYet;
}

// The same as a table, which is made only when it is opened.
function Table({ series, data, xLabels, xTitle, time, shown }: { series: Series[]; data: uPlot.AlignedData; xLabels?: string[]; xTitle: string; time?: boolean; shown: Shown }) {
  const [open, setOpen] = useState(false);
  const first = time ? Math.max(0, data[0].length - TABLE_ROWS) : 0;
  return (
    <details class="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{texts.dashboard.asTable}</summary>
      {open && (
        <table>
          <thead>
            <tr><th>{xTitle}</th>{series.map((each, i) => <th key={i}>{each.label}</th>)}</tr>
          </thead>
          <tbody>
            {[...data[0]].slice(first).map((x, row) => (
              <tr key={row}>
                <td>{xLabels ? xLabels[x] : time ? short(Math.abs(x)) : x}</td>
                {series.map((_, i) => <td key={i}>{shown(data[i + 1]![first + row])}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}
