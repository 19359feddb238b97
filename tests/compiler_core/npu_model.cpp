#include "tests/compiler_core/npu_model.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "tests/compiler_core/npu_model_jobs.h"

namespace tuner::npu::testing {
namespace {

constexpr int kLoadUnit = 0, kComputeUnit = 1, kStoreUnit = 2;

bool sets_only(Op op) { return op == Op::kSetLoad || op == Op::kSetVector || op == Op::kSetStore; }
bool of_array(Op op) { return op == Op::kMatmul || op == Op::kMatmulOs; }

class Model {
 public:
  Model(const Machine& machine, const Code& code, std::vector<uint8_t>& dram) : m(machine), code(code) {
    state.scratchpad.resize(m.scratchpad_bytes);
    state.sums.resize(m.accumulator_rows() * m.array_columns);
    state.weights.resize(m.array_rows * m.array_columns);
    state.next_weights = state.weights;
    state.dram = &dram;
    result.starts.assign(code.size(), -1);
    result.ends.assign(code.size(), -1);
    touched.resize(code.size());
  }

  Modelled run();

 private:
  // In the order of a cycle's phases.
  enum Phase { kEnd, kDispatch, kStart, kBus, kStep };
  struct InFlight {
    int index = 0;
    ModelJob job;
    int64_t ready = 0, rows_done = -1, own_end = -1;
  };
  struct QueueState {
    std::deque<std::pair<int, int64_t>> waiting;  // with the cycle of their dispatch
    std::deque<InFlight> flying;
  };

  void post(int64_t cycle, Phase phase, int queue = 0) {
    const int rank = phase == kStep ? static_cast<int>((queue - cycle % 3 + 3) % 3) : queue;
    events.insert({cycle, phase, rank, queue});
  }
  void on_end(int q);
  void on_dispatch();
  void on_start(int q);
  void on_bus();
  void on_step(int q);
  bool try_words(ModelStep& step);
  void steps_are_done(int q, InFlight& f);
  bool unit_is_free(int q) const;
  InFlight* stepping(int q);
  bool is_unordered() const;

  const Machine& m;
  const Code& code;
  ModelState state;
  Modelled result;
  std::set<std::tuple<int64_t, int, int, int>> events;
  int64_t now = 0;
  size_t dispatched = 0;
  QueueState queues[3];
  int bus_holder = -1, bus_before = kStoreUnit;
  std::map<int64_t, int64_t> bank_taken;                  // by bank: the cycle
  std::map<std::pair<int, int>, std::deque<int>> tokens;  // by giver and taker: who gave
  std::vector<std::pair<int, int>> orders;                // by tokens
  std::vector<std::map<ModelCell, bool>> touched;
};

void Model::on_end(int q) {
  auto& flying = queues[q].flying;
  while (!flying.empty() && flying.front().own_end >= 0 && flying.front().own_end <= now) {
    const int index = flying.front().index;
    for (int to = 0; to < 3; ++to)
      if ((code[index].gives & (1 << to)) != 0) tokens[{q, to}].push_back(index);
    result.ends[index] = result.cycles = now;
    flying.pop_front();
    post(now, kDispatch);
    for (int other = 0; other < 3; ++other) post(now, kStart, other);
  }
  if (!flying.empty() && flying.front().own_end > now) post(flying.front().own_end, kEnd, q);
}

void Model::on_dispatch() {
  if (dispatched == code.size()) return;
  const int q = static_cast<int>(queue_of(code[dispatched].op));
  QueueState& queue = queues[q];
  if (static_cast<int64_t>(queue.waiting.size() + queue.flying.size()) >= m.queue) return;
  queue.waiting.emplace_back(static_cast<int>(dispatched++), now);
  post(now + 1, kStart, q);
  post(now + 1, kDispatch);
}

bool Model::unit_is_free(int q) const {
  const QueueState& queue = queues[q];
  if (q == kLoadUnit || queue.flying.empty()) return true;
  const InFlight& before = queue.flying.back();
  const bool steps_left = before.own_end < 0;
  if (steps_left) return false;
  if (q == kStoreUnit) return true;
  return of_array(code[before.index].op) && of_array(code[queue.waiting.front().first].op);
}

void Model::on_start(int q) {
  QueueState& queue = queues[q];
  if (queue.waiting.empty() || queue.waiting.front().second >= now || !unit_is_free(q)) return;
  const int index = queue.waiting.front().first;
  const Instruction& i = code[index];
  for (int from = 0; from < 3; ++from)
    if ((i.waits & (1 << from)) != 0 && tokens[{from, q}].empty()) return;
  for (int from = 0; from < 3; ++from) {
    if ((i.waits & (1 << from)) == 0) continue;
    orders.emplace_back(tokens[{from, q}].front(), index);
    tokens[{from, q}].pop_front();
  }
  queue.waiting.pop_front();
  result.starts[index] = now;
  InFlight f{.index = index, .job = model_job(m, i, state), .ready = now + (q == kLoadUnit ? m.latency : 0)};
  touched[index] = f.job.touched;
  for (const auto& stream : f.job.streams) result.steps[q] += static_cast<int64_t>(stream.size());
  if (sets_only(i.op)) f.own_end = now + 1;
  post(sets_only(i.op) ? now + 1 : f.ready, kEnd, q);
  post(f.ready, kBus);
  post(f.ready, kStep, q);
  post(now + 1, kStart, q);
  queue.flying.push_back(std::move(f));
}

Model::InFlight* Model::stepping(int q) {
  for (InFlight& f : queues[q].flying)
    if (f.own_end < 0) return now >= f.ready ? &f : nullptr;
  return nullptr;
}

void Model::on_bus() {
  if (bus_holder >= 0) return;
  std::vector<int> asking;
  for (const int q : {kLoadUnit, kStoreUnit}) {
    InFlight* f = stepping(q);
    if (f != nullptr && !f->job.streams[0].empty() && f->job.streams[0].front().opens_burst)
      asking.push_back(q);
  }
  if (asking.empty()) return;
  if (asking.size() == 2) asking = {bus_before == kLoadUnit ? kStoreUnit : kLoadUnit};
  bus_holder = bus_before = asking[0];
}

bool Model::try_words(ModelStep& step) {
  std::vector<int64_t> left;
  for (const int64_t word : step.words) {
    const int64_t bank = word / (m.scratchpad_bytes / m.bank_bytes / m.banks);
    const auto [at, fresh] = bank_taken.try_emplace(bank, now);
    if (fresh || at->second < now)
      at->second = now;
    else
      left.push_back(word);
  }
  step.words = left;
  return left.empty();
}

void Model::on_step(int q) {
  InFlight* f = stepping(q);
  if (f == nullptr) return;
  for (auto& stream : f->job.streams) {
    if (stream.empty()) continue;
    ModelStep& step = stream.front();
    if (step.on_bus && bus_holder != q) {
      ++result.bus_waits[q];
      continue;
    }
    if (!try_words(step)) {
      ++result.bank_stalls[q];
      continue;
    }
    step.effect();
    if (step.closes_burst) bus_holder = -1;
    if (&stream == &f->job.streams[0]) f->rows_done = now + 1;
    stream.pop_front();
  }
  if (f->job.streams[0].empty() && f->job.streams[1].empty()) steps_are_done(q, *f);
  post(now + 1, kBus);
  post(now + 1, kStep, q);
  post(now + 1, kStart, q);
}

void Model::steps_are_done(int q, InFlight& f) {
  const Op op = code[f.index].op;
  int64_t more = 0;
  if (q == kComputeUnit && !of_array(op)) more = 4;
  if (op == Op::kStore || op == Op::kStoreSums) more = m.latency;
  f.own_end = now + 1 + more;
  if (of_array(op) && f.rows_done >= 0)
    f.own_end = std::max(f.own_end, f.rows_done + m.array_rows + m.array_columns);
  post(f.own_end, kEnd, q);
  // The load that comes next may have been ready for long.
  for (const InFlight& next : queues[q].flying)
    if (next.own_end < 0) {
      post(std::max(now + 1, next.ready), kBus);
      post(std::max(now + 1, next.ready), kStep, q);
      break;
    }
}

// By the closure of all orders: is there a pair of accesses to one cell, by two queues, one writing, in none?
bool Model::is_unordered() const {
  const size_t n = code.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (size_t a = 0; a < n; ++a)
    for (size_t b = a + 1; b < n; ++b)
      if (queue_of(code[a].op) == queue_of(code[b].op)) before[a][b] = true;
  for (const auto& [giver, taker] : orders) before[giver][taker] = true;
  for (size_t k = 0; k < n; ++k)
    for (size_t a = 0; a < n; ++a)
      if (before[a][k])
        for (size_t b = 0; b < n; ++b)
          if (before[k][b]) before[a][b] = true;
  std::map<ModelCell, std::vector<std::pair<size_t, bool>>> by_cell;
  for (size_t a = 0; a < n; ++a)
    for (const auto& [cell, write] : touched[a]) by_cell[cell].emplace_back(a, write);
  for (const auto& [cell, users] : by_cell)
    for (const auto& [a, a_writes] : users)
      for (const auto& [b, b_writes] : users)
        if (a < b && (a_writes || b_writes) && !before[a][b] && !before[b][a]) return true;
  return false;
}

Modelled Model::run() {
  post(0, kDispatch);
  while (!events.empty()) {
    const auto [cycle, phase, rank, q] = *events.begin();
    events.erase(events.begin());
    now = cycle;
    switch (phase) {
      case kEnd:
        on_end(q);
        break;
      case kDispatch:
        on_dispatch();
        break;
      case kStart:
        on_start(q);
        break;
      case kBus:
        on_bus();
        break;
      default:
        on_step(q);
    }
  }
  for (const QueueState& queue : queues)
    result.stands_still = result.stands_still || !queue.waiting.empty() || !queue.flying.empty();
  result.stands_still = result.stands_still || dispatched < code.size();
  for (const auto& [line, given] : tokens) result.unused_token = result.unused_token || !given.empty();
  result.unordered = is_unordered();
  result.scratchpad = std::move(state.scratchpad);
  result.sums = std::move(state.sums);
  return result;
}

}  // namespace

Modelled model(const Machine& machine, const Code& code, std::vector<uint8_t>& dram) {
  return Model(machine, code, dram).run();
}

}  // namespace tuner::npu::testing
