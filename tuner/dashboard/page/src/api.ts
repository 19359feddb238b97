// What the server tells. docs/dashboard.md lists paths and keys.

export interface Answer {
  workload: string; target: string; constants: string; time_ns: number; certified: boolean;
  time_low_ns?: number; time_high_ns?: number; uncertified_why?: string; default_time_ns?: number; gain?: number;
  roofline_ns?: number; roofline_share?: number; template: string; config: string; trial: string; race: number; when: string;
}
export interface JobRow {
  job: string; state: string; message: string; search: string; seed: number; tenant: string; workload: string; target: string;
  task_count: number; trials_done: number; trials_total: number; submitted: string; finished: string;
}
export interface TaskRow { workload: string; target: string; constants: string; uses: number; answer: Answer | null }
export interface RaceRow { race: number; task: number; time_ns: number; certified: boolean; finalists: number; when: string }
export interface Job extends JobRow { tasks: TaskRow[]; races: RaceRow[] }
// [id, task, ns, kind, trial, results so far if the server counts them]
export type Point = [number, number, number | null, string, string, number?];
export interface Curve { points: Point[]; next: number; more: boolean; state: string }
export interface Finalist {
  trial: string; name: string; template: string; config: string; time_ns: number; time_low_ns: number; time_high_ns: number;
  winner: boolean; default: boolean; samples_ns: number[]; process: number[];
}
export interface Race { race: number; job: string; certified: boolean; uncertified_why: string; won_by: string; finalists: Finalist[] }
export interface TrialRecord {
  record: number; trial: string; job: string; template: string; config: Record<string, number | string> | string;
  time_ns: number | null; outcome: string; message: string;
}
export interface TaskFacts {
  answer: Answer; trials: number; outcomes: Record<string, number>; gflops?: number; percent_of_peak?: number; algorithm: string;
  fingerprint: { hardware: string; toolchain: string }; races: { job: string; race: number; certified: boolean }[];
}
export interface Worker {
  worker: string; host: string; kind: string; targets: string[]; leases: number; trials_done: number; silent_s: number;
  away: boolean; unfit: string; paused_s: number; paused_why: string;
}
export interface Lease { worker: string; job: string; trial: string; workload: string; template: string; config: string }
export interface Workers {
  now: { daemon: { trials_per_s: number; queued: number; leased: number; up_s: number } } | null;
  workers: Worker[]; leases: Lease[]; why?: string;
}
export interface Verified { inside: boolean; verified: { verdict: string; time_ns: number; ratio: number } }
export interface Submitted { jobs: { job: string; already_finished: boolean; continued: boolean }[] }
export interface About { source: string; beside: string; may_change: boolean; why_not_change: string }

export class ApiError extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

const kToken = "tuner-token";
export const token = {
  get: () => sessionStorage.getItem(kToken) ?? "",
  set: (text: string) => sessionStorage.setItem(kToken, text),
  // The link brings it behind '#'. It leaves the address at once, so that nobody copies it by mistake.
  takeFromAddress(): void {
    const found = /^#token=([\w.-]+)$/.exec(location.hash);
    if (found === null) return;
    token.set(found[1]!);
    history.replaceState(null, "", "#/jobs");
  },
};

function headers(): Record<string, string> {
  return token.get() === "" ? {} : { Authorization: `Bearer ${token.get()}` };
}

async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  let reply: Response;
  try {
    reply = await fetch(path, { ...init, headers: headers(), cache: "no-store" });
  } catch {
    throw new ApiError(0, "the server does not answer");
  }
  const body: unknown = await reply.json().catch(() => null);
  if (!reply.ok) throw new ApiError(reply.status, (body as { error?: string } | null)?.error ?? `status ${reply.status}`);
  return body as T;
}

export interface TaskName { workload: string; target: string; constants: string }
export const taskQuery = (t: TaskName): string =>
  new URLSearchParams({ workload: t.workload, target: t.target, constants: t.constants }).toString();
const word = encodeURIComponent;

async function allParts<T>(path: string, key: string): Promise<T[]> {
  const rows: T[] = [];
  for (;;) {
    const part = await ask<Record<string, unknown>>(`${path}?from=${rows.length}&count=1000`);
    const got = part[key] as T[];
    rows.push(...got);
    if (got.length === 0 || rows.length >= (part["total"] as number)) return rows;
  }
}

export const api = {
  about: () => ask<About>("/api/about"),
  jobs: () => allParts<JobRow>("/api/jobs", "jobs"),
  job: (id: string) => ask<Job>(`/api/jobs/${word(id)}`),
  curve: (id: string, after: number) => ask<Curve>(`/api/jobs/${word(id)}/curve?after=${after}`),
  race: (job: string, id: number) => ask<Race>(`/api/jobs/${word(job)}/races/${id}`),
  answersBeside: () => allParts<Answer>("/api/beside/answers", "answers"),
  answers: () => allParts<Answer>("/api/answers", "answers"),
  task: (t: TaskName) => ask<TaskFacts>(`/api/task?${taskQuery(t)}`),
  async records(t: TaskName, most: number): Promise<TrialRecord[]> {
    const rows: TrialRecord[] = [];
    for (let after = 0; ;) {
      const part = await ask<{ records: TrialRecord[]; next: number; more: boolean }>(`/api/task/records?${taskQuery(t)}&after=${after}`);
      rows.push(...part.records);
      if (!part.more || rows.length >= most) return rows;
      after = part.next;
    }
  },
  workers: () => ask<Workers>("/api/workers"),
  check: (text: string) => ask<{ jobs: { tasks: number; trials: number }[] }>("/api/jobs?check=1", { method: "POST", body: text }),
  submit: (text: string) => ask<{ jobs: { job: string }[] }>("/api/jobs", { method: "POST", body: text }),
  tuneJobOn: (id: string, trials: number) => ask<Submitted>(`/api/jobs/${word(id)}/tune?trials=${trials}`, { method: "POST" }),
  tuneOn: (t: TaskName, trials: number) => ask<Submitted>(`/api/task/tune?${taskQuery(t)}&trials=${trials}`, { method: "POST" }),
  verify: (t: TaskName) => ask<Verified>(`/api/task/verify?${taskQuery(t)}`, { method: "POST" }),
  // The archive, for the browser to store.
  async library(t: TaskName): Promise<Blob> {
    const reply = await fetch(`/api/task/library?${taskQuery(t)}`, { method: "POST", headers: headers(), cache: "no-store" });
    if (reply.ok) return reply.blob();
    const body: unknown = await reply.json().catch(() => null);
    throw new ApiError(reply.status, (body as { error?: string } | null)?.error ?? `status ${reply.status}`);
  },
  cancel: (id: string) => ask<unknown>(`/api/jobs/${word(id)}/cancel`, { method: "POST" }),
};

// Follows what is new. EventSource cannot send a token, so this reads the stream itself.
export async function follow(onNews: () => void, onState: (text: string) => void): Promise<never> {
  for (let pause = 500; ; pause = Math.min(2 * pause, 10_000)) {
    try {
      const reply = await fetch("/api/events", { headers: headers(), cache: "no-store" });
      if (!reply.ok || reply.body === null) throw new Error(`status ${reply.status}`);
      onState("live");
      onNews();
      pause = 500;
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const part = await reader.read();
        if (part.done) break;
        text += part.value;
        const events = text.split("\n\n");
        text = events.pop()!;
        for (const event of events) {
          const trouble = /"trouble":("(?:[^"\\]|\\.)*")/.exec(event);
          if (trouble !== null) onState(JSON.parse(trouble[1]!) as string);
          else if (event.startsWith("event: news")) { onState("live"); onNews(); }
        }
      }
    } catch { /* it is tried again */ }
    onState("not connected, trying again");
    await new Promise(done => setTimeout(done, pause));
  }
}
