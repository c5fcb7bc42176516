// What the server is doing, live. The stream is open only while the dashboard is in view.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, getMetrics, liveSnapshots, storedKey } from "../api";
import { between, bucketsOf, byLabel, parseMetrics, type Live, type Metrics, type Point, type Reading } from "../logic/metrics";
import { familyOf } from "../logic/origins";
import { showBidi } from "../logic/plain";
import { connect, keyDialog, props } from "../state";
import { texts } from "../texts";
import { Bar } from "./bar";
import { Chart } from "./chart";
import { bytes, count as format, percent, short } from "./format";

const KEPT = 240; // points: a minute
const RETRY_MS = 2000;
const SMOOTHING = 4; // points that the tile of the speed averages over

interface State {
  reading: Reading | null;
  points: Point[];
  problem: string;
}

// Reads the stream while the page is in view; begins again when it is cut.
function useLive(): State {
  const [state, setState] = useState<State>({ reading: null, points: [], problem: "" });
  useEffect(() => {
    let abort: AbortController | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wasCut = false;
    const read = async () => {
      abort = new AbortController();
      try {
        for await (const snapshot of liveSnapshots(abort.signal)) {
          if (wasCut) void connect(); // another server may have taken its place
          wasCut = false;
          const live = snapshot as Live;
          const reading: Reading = { time: performance.now() / 1000, live, metrics: parseMetrics(live.metrics) };
          setState((before) => ({
            reading,
            points: before.reading ? [...before.points.slice(1 - KEPT), between(before.reading, reading)] : [],
            problem: "",
          }));
        }
        throw new ApiError("cut", "");
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error instanceof ApiError && error.kind === "key") keyDialog.value = "open";
        const problem = error instanceof ApiError && error.kind === "busy" ? texts.dashboard.tooMany : texts.dashboard.lost;
        wasCut = true;
        setState((before) => ({ ...before, problem }));
        timer = setTimeout(read, RETRY_MS);
      }
    };
    const onVisible = () => {
      abort?.abort();
      clearTimeout(timer);
      if (!document.hidden) void read();
    };
    onVisible();
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      document.removeEventListener("visibilitychange", onVisible);
      abort?.abort();
      clearTimeout(timer);
    };
  }, []);
  return state;
}

export function Dashboard() {
  const { reading, points, problem } = useLive();
  return (
    <div class="page dashboard">
      <div class="row">
        <h2>{texts.dashboard.title}</h2>
        <span class="spring" />
        <MetricsLink />
      </div>
      {problem && <p class="banner bad" role="alert">{problem}</p>}
      {reading ? <Panels reading={reading} points={points} /> : !problem && <p class="hint">{texts.dashboard.connecting}</p>}
    </div>
  );
}

// A link cannot send a key, so where one is needed the page shows the metrics itself.
function MetricsLink() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const open = async (event: Event) => {
    if (!storedKey()) return;
    event.preventDefault();
    setText(await getMetrics().catch(() => texts.dashboard.metricsFailed));
    dialog.current!.showModal();
  };
  return (
    <>
      <a href="metrics" target="_blank" rel="noopener" onClick={(event) => void open(event)}>{texts.dashboard.metricsLink}</a>
      <dialog ref={dialog} class="card wide" aria-labelledby="metrics-title">
        <div class="row">
          <h2 id="metrics-title">{texts.dashboard.metricsLink}</h2>
          <span class="spring" />
          <button type="button" class="quiet" onClick={() => dialog.current!.close()}>{texts.settings.close}</button>
        </div>
        <p class="hint">{texts.dashboard.metricsKey}</p>
        <pre class="metrics" tabIndex={0}>{text}</pre>
      </dialog>
    </>
  );
}

function Panels({ reading, points }: { reading: Reading; points: Point[] }) {
  const { metrics, live } = reading;
  return (
    <>
      <Tiles metrics={metrics} points={points} />
      <div class="panels">
        <SpeedPanel points={points} />
        <AcceptancePanel points={points} metrics={metrics} />
        <CostPanel costs={live.costs} />
        <HistogramPanel title={texts.dashboard.acceptedLength} name="outrider_accepted_length" metrics={metrics} />
        <HistogramPanel title={texts.dashboard.rows} name="outrider_step_rows" metrics={metrics} />
        <StagePanel metrics={metrics} />
        <SlotPanel slots={live.slots} />
        <ServerPanel servers={live.draft_servers} />
        <AboutPanel live={live} />
      </div>
    </>
  );
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function Tiles({ metrics, points }: { metrics: Metrics; points: Point[] }) {
  const recent = points.slice(-SMOOTHING);
  const speed = recent.length > 0 ? sum(recent.map((point) => point.tokensPerSecond)) / recent.length : 0;
  const proposed = sum(byLabel(metrics, "outrider_draft_tokens_proposed_total", "drafter").values());
  const accepted = sum(byLabel(metrics, "outrider_draft_tokens_accepted_total", "drafter").values());
  const finished = sum(byLabel(metrics, "outrider_requests_finished_total", "reason").values());
  const total = (name: string) => format(metrics.get(name) ?? 0);
  return (
    <dl class="tiles">
      <Tile label={texts.dashboard.speedNow} value={short(speed)} name="speed" />
      <Tile label={texts.dashboard.running} value={total("llamacpp:requests_processing")} name="llamacpp:requests_processing" />
      <Tile label={texts.dashboard.queued} value={total("llamacpp:requests_deferred")} name="llamacpp:requests_deferred" />
      <Tile label={texts.dashboard.speedUp} value={`${(metrics.get("outrider_speed_up") ?? 1).toFixed(2)}×`} name="outrider_speed_up" />
      <Tile label={texts.dashboard.acceptanceNow} value={proposed > 0 ? percent(accepted / proposed) : "–"} name="acceptance" />
      <Tile label={texts.dashboard.total} value={total("llamacpp:tokens_predicted_total")} name="llamacpp:tokens_predicted_total" />
      <Tile label={texts.dashboard.steps} value={total("llamacpp:n_decode_total")} name="llamacpp:n_decode_total" />
      <Tile label={texts.dashboard.requests} value={format(finished)} name="finished" />
    </dl>
  );
}

function Tile({ label, value, name }: { label: string; value: string; name: string }) {
  return (
    <div class="tile" data-metric={name}>
      <dd>{value}</dd>
      <dt>{label}</dt>
    </div>
  );
}

function Panel({ title, explain, wide, children }: { title: string; explain?: string; wide?: boolean; children: preact.ComponentChildren }) {
  return (
    <section class={`card panel${wide ? " wide-panel" : ""}`} aria-label={title}>
      <h3>{title}</h3>
      {explain && <p class="hint">{explain}</p>}
      {children}
    </section>
  );
}

function SpeedPanel({ points }: { points: Point[] }) {
  const data = useMemo(() => {
    const now = points.at(-1)?.time ?? 0;
    return [points.map((point) => Math.round((point.time - now) * 10) / 10), points.map((point) => point.tokensPerSecond)] as [number[], number[]];
  }, [points]);
  return (
    <Panel title={texts.dashboard.speed}>
      <Chart title={texts.dashboard.speed} series={[{ label: texts.dashboard.speed, color: "--accent", fill: true }]} data={data} time />
    </Panel>
  );
}

function AcceptancePanel({ points, metrics }: { points: Point[]; metrics: Metrics }) {
  const drafters = [...byLabel(metrics, "outrider_draft_tokens_proposed_total", "drafter").keys()];
  const data = useMemo(() => {
    const now = points.at(-1)?.time ?? 0;
    const lines = drafters.map((drafter) => points.map((point) => point.acceptance.get(drafter) ?? null));
    return [points.map((point) => point.time - now), ...lines.map((line) => line.map((value) => (value === null ? null : value * 100)))] as [number[], ...(number | null)[][]];
  }, [points]);
  return (
    <Panel title={texts.dashboard.acceptance}>
      <ul class="legend">
        {drafters.map((drafter) => {
          const proposed = metrics.get(`outrider_draft_tokens_proposed_total{drafter="${drafter}"}`) ?? 0;
          const accepted = metrics.get(`outrider_draft_tokens_accepted_total{drafter="${drafter}"}`) ?? 0;
          return (
            <li key={drafter}>
              <span class={`swatch line-${familyOf(drafter)}`} aria-hidden="true" />
              {drafter} <span class="hint">{proposed > 0 ? percent(accepted / proposed) : "–"}</span>
            </li>
          );
        })}
      </ul>
      {drafters.length === 0 ? (
        <p class="hint">{texts.server.noDrafters}</p>
      ) : (
        <Chart title={texts.dashboard.acceptance} series={drafters.map((drafter) => ({ label: drafter, color: `--line-${familyOf(drafter)}` }))} data={data} yRange={[0, 105]} unit={texts.units.percent} time />
      )}
    </Panel>
  );
}

function HistogramPanel({ title, name, metrics }: { title: string; name: string; metrics: Metrics }) {
  const buckets = bucketsOf(metrics, name);
  const counts = buckets.map((bucket) => bucket.count);
  const data = useMemo(() => [buckets.map((_, i) => i), counts] as [number[], number[]], [counts.join()]);
  return (
    <Panel title={title}>
      {sum(counts) === 0 ? <p class="hint nothing">{texts.dashboard.noData}</p> : <Chart title={title} xTitle={title} series={[{ label: texts.dashboard.count, color: "--accent", bars: true }]} data={data} xLabels={buckets.map((bucket) => bucket.label)} />}
    </Panel>
  );
}

function CostPanel({ costs }: { costs: Live["costs"] }) {
  const data = useMemo(() => {
    const ms = costs.curve.map(([, seconds]) => seconds * 1000);
    const spread = costs.curve.map(([, , share]) => share);
    const now = costs.curve.map(([rows], i) => (rows === costs.last_rows ? ms[i]! : null));
    return [costs.curve.map(([rows]) => rows), ms.map((value, i) => value * (1 + spread[i]!)), ms.map((value, i) => value * (1 - spread[i]!)), ms, now] as [number[], ...(number | null)[][]];
  }, [costs]);
  return (
    <Panel title={texts.dashboard.costs} explain={texts.dashboard.costsExplain(costs.context)}>
      <Chart
        title={texts.dashboard.costs}
        series={[
          { label: texts.dashboard.spread, color: "--accent", band: true },
          { label: texts.dashboard.spread, color: "--accent", band: true },
          { label: texts.dashboard.costs, color: "--accent" },
          { label: texts.dashboard.now, color: "--line-model", dots: true },
        ]}
        bands={[{ series: [1, 2] }]}
        data={data}
        xTitle={texts.dashboard.rowsOfStep}
        unit={texts.stats.milliseconds}
      />
    </Panel>
  );
}

function StagePanel({ metrics }: { metrics: Metrics }) {
  const stages = [...byLabel(metrics, "outrider_stage_seconds_total", "stage")];
  const total = sum(stages.map(([, seconds]) => seconds));
  return (
    <Panel title={texts.dashboard.stages} explain={texts.dashboard.stagesExplain}>
      {total === 0 ? (
        <p class="hint nothing">{texts.dashboard.noData}</p>
      ) : (
        <ul class="stages">
          {stages.map(([stage, seconds]) => (
            <li key={stage}>
              <span>{texts.dashboard.stageNames[stage] ?? stage}</span>
              <Bar share={seconds / total} label={texts.dashboard.stageNames[stage] ?? stage} text={percent(seconds / total)} />
              <span class="number">{texts.dashboard.seconds(short(seconds))}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function SlotPanel({ slots }: { slots: Live["slots"] }) {
  return (
    <Panel title={texts.dashboard.slots}>
      <table>
        <thead>
          <tr><th>{texts.dashboard.slot}</th><th>{texts.dashboard.state}</th><th>{texts.dashboard.prompt}</th><th>{texts.dashboard.generated}</th><th>{texts.dashboard.inMemory}</th></tr>
        </thead>
        <tbody>
          {slots.map((slot) => (
            <tr key={slot.id} class={slot.is_processing ? "busy" : ""}>
              <td>{slot.id}</td>
              <td>{slot.is_processing ? texts.dashboard.busy : texts.dashboard.idle}</td>
              <td>{slot.n_prompt_tokens}</td>
              <td>{slot.next_token[0].n_decoded}</td>
              <td><Bar share={slot.tokens_in_memory / slot.n_ctx} label={texts.dashboard.inMemory} text={percent(slot.tokens_in_memory / slot.n_ctx)} /> {slot.tokens_in_memory}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function ServerPanel({ servers }: { servers: Live["draft_servers"] }) {
  return (
    <Panel title={texts.dashboard.servers}>
      {servers.length === 0 ? (
        <p class="hint nothing">{texts.dashboard.noServers}</p>
      ) : (
        <table>
          <thead>
            <tr><th>{texts.dashboard.server}</th><th>{texts.dashboard.state}</th><th>{texts.dashboard.streams}</th><th>{texts.dashboard.answerTime}</th></tr>
          </thead>
          <tbody>
            {servers.map((server) => (
              <tr key={server.address}>
                <td>{showBidi(server.address)}</td>
                <td>{server.usable ? texts.dashboard.usable : texts.dashboard.notUsable}</td>
                <td>{server.streams}</td>
                <td>{server.answer_seconds > 0 ? texts.stats.milliseconds(short(server.answer_seconds * 1000)) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function AboutPanel({ live }: { live: Live }) {
  const known = props.value;
  if (!known) return null;
  const facts: [string, string][] = [
    [texts.dashboard.model, known.model_alias],
    [texts.dashboard.memory, texts.dashboard.memoryOf(bytes(live.memory.resident), bytes(live.memory.model))],
    [texts.dashboard.drafters, known.drafters.join(", ") || texts.server.noDrafters],
    [texts.dashboard.exact, known.exactness.holds ? texts.dashboard.exactHolds : known.exactness.reason],
    ...(known.exactness.rests_on ?? []).map((reason): [string, string] => [texts.dashboard.restsOn, reason]),
    [texts.dashboard.kernels, known.kernels],
    [texts.dashboard.rollback, known.rollback],
    [texts.dashboard.build, known.build_info],
  ];
  return (
    <Panel title={texts.dashboard.about}>
      <dl class="facts">
        {facts.map(([name, value], i) => (
          <div key={i}>
            <dt>{name}</dt>
            <dd>{showBidi(value)}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
