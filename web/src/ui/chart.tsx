// uPlot in a card that follows the width of the page and the theme's colours.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { preferences } from "../state";

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
  yUnit?: string;
  bands?: uPlot.Band[];
  time?: boolean; // x is seconds before now
}

const HEIGHT = 180;

// The value that a colour of style.css has in the present theme.
function cssColor(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export function Chart({ title, series, data, xLabels, yRange, yUnit = "", bands, time }: ChartProps) {
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
        x: { time: false, range: xLabels ? [-0.6, xLabels.length - 0.4] : undefined },
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
          values: (_plot, values) => values.map((value) => (xLabels ? (xLabels[value] ?? "") : time ? (value === 0 ? "" : `${value} s`) : `${value}`)),
        },
        { stroke: text, grid, ticks: { show: false }, size: 52, font: "12px system-ui", values: (_plot, values) => values.map((value) => `${Number(value.toPrecision(3))}${yUnit}`) },
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
  return <div ref={box} class="chart" role="img" aria-label={title} />;
}
