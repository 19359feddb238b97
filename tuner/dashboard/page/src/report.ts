// What a report shows beside its drawings: the dashboard's own charts, of the facts in the file. Without a script the drawings are there.
import type { Point, Finalist } from "./api";
import { Chart } from "./chart";
import { drawCurve } from "./curve";
import { el } from "./dom";
import { knobCharts, KnobRecord } from "./knobs";
import { raceSamples } from "./race_samples";

// As explored_facts() of tuner/report writes them.
interface Task { index: number; points: [string, number | null, string][]; records: KnobRecord[]; default_ns: number; roofline_ns: number; finalists: Finalist[] }

function fill(box: HTMLElement, task: Task): void {
  const chart = new Chart(320), knobs = knobCharts();
  const points = task.points.map(([trial, ns, kind], i): Point => [i + 1, 0, ns, kind, trial]);
  const levels = { ...(task.default_ns > 0 ? { default_time_ns: task.default_ns } : {}), ...(task.roofline_ns > 0 ? { roofline_ns: task.roofline_ns } : {}) };
  const linear = el("input", { type: "checkbox", change: () => draw() });
  const draw = (): void => drawCurve(chart, points, 0, levels, !linear.checked);
  box.append(el("h4", {}, "Best time against results"), el("div", { class: "bar" }, el("label", {}, linear, " linear scale")), chart.box,
    el("h4", {}, "Knobs against time"), knobs.element);
  if (task.records.length < points.length) box.append(el("p", { class: "note" }, `Knobs of ${task.records.length} of ${points.length} trials.`));
  draw();
  knobs.show(task.records);
  if (task.finalists.length === 0) return;
  const race = el("div");
  box.append(el("h4", {}, "Samples of the race"), race);
  raceSamples(race, task);
}

const tasks = JSON.parse(document.getElementById("explored")!.textContent!) as Task[];
tasks.forEach((task, i) => {
  const box = document.querySelector<HTMLDetailsElement>(`#task${task.index} details.explore`);
  if (box === null) return;
  let filled = false;
  const look = (): void => { if (box.open && !filled) { filled = true; fill(box, task); } };
  box.addEventListener("toggle", look);
  box.hidden = false;
  // One task is shown at once; of many, those that a person opens.
  if (i === 0) box.open = true;
  look();
});
