// One task: its answer, a knob against time, two knobs as a heat map, its races.
import { api, TaskName, TrialRecord } from "../api";
import { Chart } from "../chart";
import { el, replace, trouble } from "../dom";
import * as words from "../words";
import { raceBox } from "./race";
import { tuneOn } from "./tune_on";
import type { Page, View } from "./view";

const kMostRecords = 20_000, kMostCells = 40;

type Knobs = Map<string, (number | string)[]>;  // of one template: its knobs, and their values in order
const inOrder = (values: Set<number | string>): (number | string)[] =>
  [...values].sort((a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

export function knobsOf(records: TrialRecord[]): Knobs {
  const sets = new Map<string, Set<number | string>>();
  for (const r of records)
    if (typeof r.config === "object")
      for (const [knob, value] of Object.entries(r.config)) {
        if (!sets.has(knob)) sets.set(knob, new Set());
        sets.get(knob)!.add(value);
      }
  return new Map([...sets].filter(([, values]) => values.size > 1).map(([knob, values]) => [knob, inOrder(values)]));
}
const valueOf = (r: TrialRecord, knob: string): number | string | undefined => typeof r.config === "object" ? r.config[knob] : undefined;

function heatMap(records: TrialRecord[], across: string, down: string, knobs: Knobs): HTMLElement {
  const columns = knobs.get(across)!.slice(0, kMostCells), rows = knobs.get(down)!.slice(0, kMostCells);
  const best = new Map<string, number>();
  for (const r of records) {
    if (r.time_ns === null || r.outcome !== "ok") continue;
    const key = JSON.stringify([valueOf(r, across), valueOf(r, down)]);
    best.set(key, Math.min(best.get(key) ?? Infinity, r.time_ns));
  }
  const times = [...best.values()], least = Math.min(...times), most = Math.max(...times);
  const share = (ns: number): number => most > least ? Math.log(ns / least) / Math.log(most / least) : 0;
  return el("div", { class: "wide-box", tabindex: 0, role: "group", "aria-label": `Best time for each pair of ${across} and ${down}` }, el("table", { class: "heat" },
    el("caption", {}, `Best time: ${across} across, ${down} down`),
    el("thead", {}, el("tr", {}, el("td"), ...columns.map(c => el("th", { scope: "col" }, String(c))))),
    el("tbody", {}, ...rows.map(row => el("tr", {}, el("th", { scope: "row" }, String(row)), ...columns.map(column => {
      const ns = best.get(JSON.stringify([column, row]));
      const cell = el("td", {}, words.time(ns));
      // Nine steps of one colour, each with a text colour that can be read on it.
      cell.className = ns === undefined ? "none" : `step${Math.round(8 * (1 - share(ns)))}`;
      return cell;
    }))))));
}

// Measures the answer again, or stores its library: work on the server's host.
function work(task: TaskName): HTMLElement {
  const said = el("p", { role: "status", class: "said", id: "work" });
  const tell = (line: string, bad = false): void => { said.textContent = line; said.classList.toggle("trouble", bad); };
  const button = (name: string, doing: string, run: () => Promise<string>): HTMLButtonElement => {
    const made = el("button", { type: "button", click: async () => {
      made.disabled = true;
      tell(doing);
      try { tell(await run()); } catch (error) { tell((error as Error).message, true); } finally { made.disabled = false; }
    } }, name);
    return made;
  };
  return el("div", {}, el("div", { class: "bar" },
    button("Verify again", "measuring in fresh processes ...", async () => {
      const found = await api.verify(task);
      const now = `now ${words.time(found.verified.time_ns)}`;
      if (found.verified.verdict === "cannot tell") return `cannot tell: the machine is too busy; ${now}`;
      return `${found.inside ? "inside" : "outside of"} the published interval: ${now}`;
    }),
    button("Download the library", "building ...", async () => {
      const url = URL.createObjectURL(await api.library(task)), link = el("a", { href: url, download: "kernel.tar.gz" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      return "kernel.tar.gz: a library with a C header";
    })), said);
}

export function taskView(page: Page, task: TaskName): View {
  const head = el("div"), problem = el("div"), drawn = el("div"), heat = el("div"), races = el("div");
  const chart = new Chart(300);
  let records: TrialRecord[] = [], knobs: Knobs = new Map(), read = -1e9;
  const pick = (label: string): HTMLSelectElement => el("select", { "aria-label": label, change: () => draw() });
  const template = pick("Template"), first = pick("Knob"), second = pick("Second knob");
  template.addEventListener("change", () => fill());

  function own(): TrialRecord[] { return records.filter(r => r.template === template.value); }
  function fill(): void {
    knobs = knobsOf(own());
    const names = [...knobs.keys()];
    const keep = (select: HTMLSelectElement, usual: string | undefined): void => {
      const before = select.value;
      replace(select, ...names.map(n => el("option", { value: n }, n)));
      select.value = names.includes(before) ? before : usual ?? "";
    };
    keep(first, names[0]);
    keep(second, names[1]);
    draw();
  }
  function draw(): void {
    const known = own(), values = knobs.get(first.value);
    if (values === undefined) return replace(heat, el("p", {}, "No knob of this template has two values here."));
    const rows = known.map(r => ({ at: values.indexOf(valueOf(r, first.value) ?? ""), r })).filter(p => p.at >= 0 && p.r.time_ns !== null);
    rows.sort((a, b) => a.at - b.at);
    const best = new Map<number, number>();
    for (const p of rows) if (p.r.outcome === "ok") best.set(p.at, Math.min(best.get(p.at) ?? Infinity, p.r.time_ns!));
    let told = -1;
    chart.label = `${first.value} against time: ${rows.length} results, ${values.length} values`;
    chart.draw(rows.map(p => p.at), [
      { name: "one trial", colour: "mark", values: rows.map(p => p.r.outcome === "ok" ? p.r.time_ns : null), points: true },
      { name: "cut", colour: "bad", values: rows.map(p => p.r.outcome === "ok" ? null : p.r.time_ns), points: true },
      { name: "best of this value", colour: "best", values: rows.map(p => { if (p.at === told) return null; told = p.at; return best.get(p.at) ?? null; }), points: true },
    ], first.value, true, v => Number.isInteger(v) ? String(values[v] ?? "") : "");
    replace(heat, second.value !== "" && second.value !== first.value ? heatMap(known, first.value, second.value, knobs) : null);
  }

  return {
    title: words.workload(task.workload),
    element: el("section", {}, el("p", {}, el("a", { href: "#/answers" }, "All answers")), problem, head,
      page.mayChange ? tuneOn(trials => api.tuneOn(task, trials)) : null, page.mayChange ? work(task) : null, drawn, races),
    async refresh() {
      if (performance.now() - read < 5_000) return;
      read = performance.now();
      try {
        const facts = await api.task(task), a = facts.answer;
        replace(head, el("h1", {}, words.workload(task.workload)),
          el("dl", { class: "facts" },
            el("dt", {}, "Time"), el("dd", {}, words.time(a.time_ns) + (a.certified ? ` (95 %: ${words.time(a.time_low_ns)} .. ${words.time(a.time_high_ns)})` : " in one trial")),
            el("dt", {}, "Certified"), el("dd", {}, a.certified ? "yes" : `no: ${a.uncertified_why ?? ""}`),
            el("dt", {}, "Gain"), el("dd", {}, a.gain === undefined ? "not claimed" : `${words.gain(a.gain)} the speed of the default config (${words.time(a.default_time_ns)})`),
            el("dt", {}, "Roofline"), el("dd", {}, a.roofline_share === undefined ? "-" : `${words.percent(a.roofline_share)} of it (${words.time(a.roofline_ns)})`),
            el("dt", {}, "Trial"), el("dd", {}, `${a.trial}: ${a.template}`),
            el("dt", {}, "Config"), el("dd", { class: "config" }, a.config),
            el("dt", {}, "Outcomes"), el("dd", {}, Object.entries(facts.outcomes).map(([k, n]) => `${n} ${words.outcome(k)}`).join(", ") || "-"),
            el("dt", {}, "Target"), el("dd", { class: "config" }, task.target)));
        const before = races.dataset["races"], now = facts.races.map(r => r.race).join();
        if (before !== now)
          replace(races, facts.races.length === 0 ? null : el("h2", {}, "Races"),
            ...facts.races.map((r, i) => raceBox(r.job, r.race, `Race of job ${r.job}, ${r.certified ? "certified" : "not certified"}`, i === 0)));
        races.dataset["races"] = now;
        replace(problem);
      } catch (error) { replace(problem, trouble(error)); throw error; }
      try {
        records = await api.records(task, kMostRecords);
        const names = [...new Set(records.map(r => r.template))], before = template.value;
        const of = (name: string): number => records.filter(r => r.template === name).length;
        names.sort((x, y) => of(y) - of(x));
        replace(template, ...names.map(n => el("option", { value: n }, `${n} (${of(n)})`)));
        if (names.includes(before)) template.value = before;
        if (drawn.childElementCount === 0)
          replace(drawn, el("h2", {}, "Knobs against time"), el("div", { class: "bar" },
            el("label", {}, "Template ", template), el("label", {}, "Knob ", first), el("label", {}, "and ", second)), chart.box, heat);
        fill();
      } catch (error) { replace(drawn, el("h2", {}, "Knobs against time"), trouble(error)); }
    },
  };
}
