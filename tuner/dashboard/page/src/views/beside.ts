// Two databases side by side: tasks that both have an answer for, or only one.
import { Answer, api } from "../api";
import { el, replace, trouble } from "../dom";
import { Table } from "../table";
import * as words from "../words";
import type { Page, View } from "./view";

export interface Pair { workload: string; target: string; constants: string; here: Answer | null; beside: Answer | null }

const keyOf = (a: { workload: string; target: string; constants: string }): string => JSON.stringify([a.workload, a.target, a.constants]);

export function pairs(here: Answer[], beside: Answer[]): Pair[] {
  const found = new Map<string, Pair>();
  for (const a of here) found.set(keyOf(a), { workload: a.workload, target: a.target, constants: a.constants, here: a, beside: null });
  for (const a of beside) {
    const known = found.get(keyOf(a));
    if (known) known.beside = a;
    else found.set(keyOf(a), { workload: a.workload, target: a.target, constants: a.constants, here: null, beside: a });
  }
  return [...found.values()];
}

const ratio = (p: Pair): number | undefined => p.here && p.beside ? p.beside.time_ns / p.here.time_ns : undefined;
const timeOf = (a: Answer | null): string => a === null ? "-" : words.time(a.time_ns) + (a.certified ? "" : ", not certified");

export function besideView(page: Page): View {
  const count = el("p", { role: "status", class: "count" }), problem = el("div"), mean = el("p", { id: "mean" });
  let read = -1e9;
  const table = new Table<Pair>("Answers of both", [
    { name: "Task", text: p => words.task(p.workload) + (p.constants === "cold" ? " (cold constants)" : ""), order: p => p.workload },
    { name: "Here", text: p => timeOf(p.here), order: p => p.here?.time_ns ?? Infinity, right: true, width: 25 },
    { name: "Beside", text: p => timeOf(p.beside), order: p => p.beside?.time_ns ?? Infinity, right: true, width: 25 },
    { name: "Beside / here", text: p => ratio(p)?.toFixed(3) ?? "-", order: p => ratio(p) ?? -1, right: true, width: 16 },
    { name: "Same config", text: p => !p.here || !p.beside ? "-" : p.here.template === p.beside.template && p.here.config === p.beside.config ? "yes" : "no",
      order: p => p.here && p.beside ? Number(p.here.config !== p.beside.config) : 2, rank: 2, width: 14 },
    { name: "Target", text: p => p.target, order: p => p.target, rank: 4, width: 24 },
  ], p => { if (p.here) location.hash = `#/task?${new URLSearchParams({ workload: p.workload, target: p.target, constants: p.constants })}`; },
     (shown, of) => { count.textContent = shown === of ? `${of} tasks` : `${shown} of ${of} tasks`; });
  const search = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter tasks", input: e => table.filter((e.target as HTMLInputElement).value) });
  return {
    title: "Side by side",
    element: el("section", {}, el("h1", {}, "Side by side"), el("p", {}, `Beside: ${page.beside}`), mean,
      el("div", { class: "bar" }, search, count), problem, table.box),
    async refresh() {
      if (performance.now() - read < 5_000) return;
      read = performance.now();
      try {
        const both = pairs(await api.answers(), await api.answersBeside());
        table.rows = both;
        const ratios = both.map(ratio).filter((r): r is number => r !== undefined);
        mean.textContent = ratios.length === 0 ? "No task has an answer in both." :
          `${ratios.length} tasks have an answer in both; the geometric mean of beside / here is ${Math.exp(ratios.reduce((s, r) => s + Math.log(r), 0) / ratios.length).toFixed(3)}. Above 1, it is faster here.`;
        replace(problem);
      } catch (error) { replace(problem, trouble(error)); throw error; }
    },
  };
}
