// All answers: search, sort, filter.
import { Answer, api, taskQuery } from "../api";
import { el, replace, trouble } from "../dom";
import { Table } from "../table";
import * as words from "../words";
import type { View } from "./view";

const kAgainMs = 5_000;  // a list of thousands is not asked for with each result

export function answersView(): View {
  const count = el("p", { role: "status", class: "count" });
  const problem = el("div");
  let all: Answer[] = [], read = 0;
  const table = new Table<Answer>("Answers", [
    { name: "Task", text: a => words.task(a.workload) + (a.constants === "cold" ? " (cold constants)" : ""), order: a => a.workload },
    { name: "Time", text: a => words.time(a.time_ns), order: a => a.time_ns, right: true, width: 12 },
    { name: "95 %", text: a => a.certified ? `${words.time(a.time_low_ns)} .. ${words.time(a.time_high_ns)}` : "-",
      order: a => a.certified ? (a.time_high_ns! - a.time_low_ns!) / a.time_ns : 9, right: true, rank: 3, width: 22 },
    { name: "Gain", text: a => words.gain(a.gain), order: a => a.gain ?? 0, right: true, width: 9 },
    { name: "Of roofline", text: a => words.percent(a.roofline_share), order: a => a.roofline_share ?? 0, right: true, rank: 2, width: 13 },
    { name: "Certified", text: a => a.certified ? "certified" : `no: ${a.uncertified_why ?? ""}`, order: a => a.certified ? "" : a.uncertified_why ?? "no", rank: 2, width: 13 },
    { name: "Template", text: a => a.template, order: a => a.template, rank: 4, width: 18 },
    { name: "Target", text: a => a.target, order: a => a.target, rank: 4, width: 24 },
    { name: "When (UTC)", text: a => words.when(a.when), order: a => a.when, rank: 4, width: 20 },
  ], a => { location.hash = `#/task?${taskQuery(a)}`; },
     (shown, of) => { count.textContent = shown === of ? `${of} answers` : `${shown} of ${of} answers`; });
  const only = el("select", { "aria-label": "Which answers", change: () => choose() },
    el("option", { value: "all" }, "all"), el("option", { value: "yes" }, "certified"), el("option", { value: "no" }, "not certified"));
  const choose = (): void => { table.rows = only.value === "all" ? all : all.filter(a => a.certified === (only.value === "yes")); };
  const search = el("input", { type: "search", placeholder: "Filter: matmul m=64", "aria-label": "Filter answers", input: e => table.filter((e.target as HTMLInputElement).value) });
  return {
    title: "Answers",
    element: el("section", {}, el("h1", {}, "Answers"), el("div", { class: "bar" }, search, only, count), problem, table.box),
    async refresh() {
      if (performance.now() - read < kAgainMs && all.length > 0) return;
      read = performance.now();
      try { all = await api.answers(); choose(); replace(problem); } catch (error) { replace(problem, trouble(error)); throw error; }
    },
  };
}
