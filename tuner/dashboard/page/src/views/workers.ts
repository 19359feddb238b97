// Workers, and what each of them does.
import { api, Lease, Worker } from "../api";
import { el, replace, trouble } from "../dom";
import * as words from "../words";
import type { View } from "./view";

const state = (w: Worker): string =>
  w.away ? "away" : w.unfit !== "" ? `unfit: ${w.unfit}` : w.paused_s > 0 ? `paused for ${w.paused_s.toFixed(0)} s: ${w.paused_why}` : w.leases > 0 ? "busy" : "idle";

function card(w: Worker, leases: Lease[]): HTMLElement {
  return el("li", {}, el("h2", {}, w.worker),
    el("dl", { class: "facts" },
      el("dt", {}, "State"), el("dd", {}, state(w)),
      el("dt", {}, "Host"), el("dd", {}, w.host),
      el("dt", {}, "Results"), el("dd", {}, String(w.trials_done)),
      el("dt", {}, "Targets"), el("dd", { class: "config" }, w.targets.join(", ") || "-")),
    leases.length === 0 ? null : el("ul", { class: "list" }, ...leases.slice(0, 20).map(l => el("li", {},
      el("a", { href: `#/jobs/${encodeURIComponent(l.job)}` }, `${l.job}, ${l.trial}`), el("span", { class: "config" }, `${words.workload(l.workload)}: ${l.template} ${l.config}`)))));
}

export function workersView(): View {
  const inside = el("div");
  return {
    title: "Workers",
    everyMs: 1_000,
    element: el("section", {}, el("h1", {}, "Workers"), inside),
    async refresh() {
      try {
        const facts = await api.workers(), d = facts.now?.daemon;
        replace(inside,
          d === undefined ? el("p", {}, facts.why ?? "no daemon runs")
                          : el("p", {}, `${d.trials_per_s.toFixed(1)} trials per second, ${d.leased} at workers, ${d.queued} wait`),
          el("ul", { class: "cards" }, ...facts.workers.map(w => card(w, facts.leases.filter(l => l.worker === w.worker)))));
      } catch (error) { replace(inside, trouble(error)); throw error; }
    },
  };
}
