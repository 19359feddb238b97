// The page: which view is shown, by the address behind '#'; what is new reaches it.
import { api, ApiError, follow, token } from "./api";
import { el, replace, trouble } from "./dom";
import { answersView } from "./views/answers";
import { besideView } from "./views/beside";
import { compareView } from "./views/compare";
import { jobView } from "./views/job";
import { jobsView } from "./views/jobs";
import { taskView } from "./views/task";
import type { Page, View } from "./views/view";
import { workersView } from "./views/workers";

const main = document.getElementById("main")!, state = document.getElementById("state")!;
const page: Page = { mayChange: false, beside: "" };
let view: View | null = null;

function viewOf(hash: string): View {
  const [path, query] = hash.replace(/^#/, "").split("?");
  const words = path!.split("/").filter(w => w !== "").map(decodeURIComponent);
  if (words[0] === "jobs" && words[1] !== undefined) return jobView(page, words[1]);
  if (words[0] === "compare" && words[2] !== undefined) return compareView(words[1]!, words[2]);
  if (words[0] === "beside" && page.beside !== "") return besideView(page);
  if (words[0] === "answers") return answersView();
  if (words[0] === "workers") return workersView();
  if (words[0] === "task") {
    const q = new URLSearchParams(query);
    return taskView(page, { workload: q.get("workload") ?? "", target: q.get("target") ?? "", constants: q.get("constants") ?? "warm" });
  }
  return jobsView(page);
}

function askForToken(why: string): void {
  const field = el("input", { type: "password", id: "token", autocomplete: "off" });
  replace(main, el("h1", {}, "A token is needed"), trouble(why),
    el("form", { submit: event => { event.preventDefault(); token.set(field.value.trim()); location.reload(); } },
      el("label", { for: "token" }, "Token "), field, " ", el("button", { type: "submit" }, "Use it")));
}

async function refresh(): Promise<void> {
  const shown = view;
  try { await shown?.refresh(); } catch (error) {
    if (error instanceof ApiError && error.status === 401) askForToken(error.message);
  }
}

let clock: ReturnType<typeof setInterval> | undefined;
function show(): void {
  clearInterval(clock);
  view = viewOf(location.hash);
  document.title = `${view.title} - tuner`;
  replace(main, view.element);
  for (const link of document.querySelectorAll("nav a"))
    location.hash.startsWith(link.getAttribute("href")!) ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
  void refresh();
  if (view.everyMs !== undefined) clock = setInterval(() => { if (!document.hidden) void onNews(); }, view.everyMs);
}

// News come in bursts: one look at a time, and one more when it has ended.
let looking = false, again = false;
async function onNews(): Promise<void> {
  again = true;
  if (looking) return;
  looking = true;
  while (again) {
    again = false;
    await refresh();
    await new Promise(done => setTimeout(done, 300));
  }
  looking = false;
}

async function start(): Promise<void> {
  token.takeFromAddress();
  try {
    const about = await api.about();
    page.mayChange = about.may_change;
    page.beside = about.beside;
    document.getElementById("beside")!.hidden = page.beside === "";
    document.getElementById("source")!.textContent = about.source;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return askForToken(error.message);
    return replace(main, trouble(error));
  }
  addEventListener("hashchange", show);
  if (!location.hash.startsWith("#/")) history.replaceState(null, "", "#/jobs");
  show();
  void follow(() => void onNews(), text => { state.textContent = text; });
}
void start();
