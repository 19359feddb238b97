#include "compiler_core/npu/simulator.h"

#include <algorithm>
#include <bit>
#include <deque>

#include "compiler_core/npu/fault_text.h"
#include "compiler_core/npu/ledger.h"
#include "compiler_core/npu/unit.h"
#include "compiler_core/npu/values.h"

namespace tuner::npu {
namespace {

class Simulation {
 public:
  Simulation(const Machine& machine, const Code& code, std::span<uint8_t> dram, std::vector<Span>* timeline)
      : m_(machine),
        code_(code),
        values_(machine, dram),
        ledger_(machine, dram.size()),
        timeline_(timeline),
        bank_shift_(std::countr_zero(static_cast<uint64_t>(machine.words_per_bank()))) {}

  Simulated run();
  ChipMemory chip() const { return {values_.scratchpad(), values_.sums()}; }

 private:
  struct Token {
    Clock clock;
    uint32_t giver;
  };

  // The phases of a cycle, in their order. Each returns whether anything happened.
  bool end_instructions();
  bool dispatch();
  bool start_instructions();
  void grant_bus();
  bool step_units();

  bool unit_takes(Queue queue) const;
  bool tokens_there(const Instruction& i, Queue queue) const;
  void start(Queue queue);
  void count_accesses(const Instruction& i, const Plan& plan);
  void stop_at(FaultKind kind, uint32_t index, const std::string& what);
  bool step(int queue, uint64_t& busy);
  bool step_stream(Running& r, Stream& stream, QueueCounts& counts, uint64_t& busy);
  void finish_steps(int queue, Running& r);
  bool wants_bus(int queue);
  bool all_ended() const;
  int64_t next_event();
  void stand_still();
  void look_for_unused_tokens();

  const Machine m_;
  const Code& code_;
  Values values_;
  Ledger ledger_;
  std::vector<Span>* timeline_;
  const int bank_shift_;  // from a word to its bank; sizes are powers of two
  Simulated result_;
  int64_t now_ = 0;
  uint32_t next_ = 0;  // to be dispatched
  Unit units_[kQueues];
  std::deque<Token> tokens_[kQueues][kQueues];  // by giver and taker
  int bus_owner_ = -1;
  int last_owner_ = static_cast<int>(Queue::kStore);
};

void Simulation::stop_at(FaultKind kind, uint32_t index, const std::string& what) {
  if (!result_.fault) result_.fault = Fault{kind, index, fault_text(code_, index, what)};
}

bool Simulation::end_instructions() {
  bool any = false;
  for (int q = 0; q < kQueues; ++q) {
    std::deque<Running>& running = units_[q].running;
    while (!running.empty() && running.front().own_end >= 0 && running.front().own_end <= now_) {
      Running& r = running.front();
      for (int to = 0; to < kQueues; ++to)
        if ((code_[r.index].gives >> to & 1) != 0) tokens_[q][to].push_back({r.clock, r.index});
      r.span.end = now_;
      if (timeline_ != nullptr) timeline_->push_back(r.span);
      units_[q].give_back(std::move(r.plan));
      running.pop_front();
      result_.cycles = now_;
      any = true;
    }
  }
  return any;
}

bool Simulation::dispatch() {
  if (next_ == code_.size()) return false;
  Unit& unit = units_[static_cast<int>(queue_of(code_[next_].op))];
  if (unit.held() >= static_cast<size_t>(m_.queue)) return false;
  unit.waiting.push_back({next_++, now_});
  return true;
}

bool Simulation::tokens_there(const Instruction& i, Queue queue) const {
  for (int from = 0; from < kQueues; ++from)
    if ((i.waits >> from & 1) != 0 && tokens_[from][static_cast<int>(queue)].empty()) return false;
  return true;
}

bool Simulation::unit_takes(Queue queue) const {
  const Unit& unit = units_[static_cast<int>(queue)];
  if (unit.running.empty() || queue == Queue::kLoad) return true;
  const Running& last = unit.running.back();
  if (queue == Queue::kStore) return last.steps_done;
  // The array takes its next rows while sums of the last ones are on their way. The vector unit reads sums.
  return last.steps_done && is_array(code_[last.index].op) && is_array(code_[unit.waiting.front().index].op);
}

bool Simulation::start_instructions() {
  bool any = false;
  for (int q = 0; q < kQueues && !result_.fault; ++q) {
    const Unit& unit = units_[q];
    if (unit.waiting.empty() || unit.waiting.front().dispatch >= now_) continue;
    const Queue queue = static_cast<Queue>(q);
    if (!unit_takes(queue) || !tokens_there(code_[unit.waiting.front().index], queue)) continue;
    start(queue);
    any = true;
  }
  return any;
}

void Simulation::start(Queue queue) {
  Unit& unit = units_[static_cast<int>(queue)];
  const auto [index, dispatched] = unit.waiting.front();
  unit.waiting.pop_front();
  const Instruction& i = code_[index];
  for (int from = 0; from < kQueues; ++from) {
    if ((i.waits >> from & 1) == 0) continue;
    std::deque<Token>& tokens = tokens_[from][static_cast<int>(queue)];
    for (int q = 0; q < kQueues; ++q) unit.clock[q] = std::max(unit.clock[q], tokens.front().clock[q]);
    tokens.pop_front();
  }
  unit.clock[static_cast<int>(queue)] = index + 1;
  Running r{.index = index, .clock = unit.clock, .plan = unit.take_plan()};
  r.span = {index, queue, dispatched, now_, now_, now_, 0};
  make_plan(m_, i, values_.strides(queue), r.plan);
  if (const auto bad = ledger_.bad_cell(r.plan))
    return stop_at(bad->outside ? FaultKind::kOutside : FaultKind::kNeverWritten, index, bad_cell_text(*bad));
  if (const auto conflict = ledger_.conflict(r.plan, queue, unit.clock)) {
    const Unordered pair = unordered(*conflict, index);
    return stop_at(pair.writes ? FaultKind::kOverwrites : FaultKind::kReadsTooEarly, pair.instruction,
                   conflict_text(code_, *conflict, pair));
  }
  if (const std::string wrong = values_.run(i); !wrong.empty())
    return stop_at(FaultKind::kUnsetRegisters, index, wrong);
  ledger_.record(r.plan, queue, index + 1);
  if (is_array(i.op)) {
    const int64_t rows = i.op == Op::kMatmul ? int64_t{i.rows} * i.outer : int64_t{i.rows};
    result_.macs += rows * m_.array_rows * m_.array_columns;
  }
  count_accesses(i, r.plan);
  QueueCounts& counts = result_.queues[static_cast<int>(queue)];
  ++counts.instructions;
  counts.steps += static_cast<int64_t>(r.plan.steps.size());
  r.first.end = r.second.step = r.plan.second_stream;
  r.second.end = static_cast<uint32_t>(r.plan.steps.size());
  if (only_sets(i.op)) {
    r.steps_done = true;
    r.own_end = now_ + 1;
  }
  unit.running.push_back(std::move(r));
}

void Simulation::count_accesses(const Instruction& i, const Plan& plan) {
  AccessCounts& counts = result_.accesses;
  counts.scratchpad_words += static_cast<int64_t>(plan.words.size());
  for (const Plan::Step& step : plan.steps) counts.dram_bytes += step.bus != 0 ? m_.dram_bytes : 0;
  for (const auto& sums : plan.sums)
    counts.accumulator_rows += int64_t{sums.count} * ((sums.read ? 1 : 0) + (sums.write ? 1 : 0));
  if (queue_of(i.op) == Queue::kCompute && !is_array(i.op))
    counts.vector_values += static_cast<int64_t>(plan.steps.size()) * m_.lanes;
}

bool Simulation::wants_bus(int queue) {
  const Running* r = units_[queue].current();
  if (r == nullptr || r->first.done()) return false;
  if (queue == static_cast<int>(Queue::kLoad) && now_ < r->span.start + m_.latency) return false;
  return (r->plan.steps[r->first.step].bus & Plan::kFirst) != 0;
}

void Simulation::grant_bus() {
  if (bus_owner_ >= 0) return;
  const int load = static_cast<int>(Queue::kLoad), store = static_cast<int>(Queue::kStore);
  const bool load_wants = wants_bus(load), store_wants = wants_bus(store);
  if (!load_wants && !store_wants) return;
  if (load_wants && store_wants)
    bus_owner_ = last_owner_ == load ? store : load;
  else
    bus_owner_ = load_wants ? load : store;
  last_owner_ = bus_owner_;
}

// The words of the stream's step take their banks. Returns whether the step is complete.
bool Simulation::step_stream(Running& r, Stream& stream, QueueCounts& counts, uint64_t& busy) {
  const uint32_t begin = stream.step == 0 ? 0 : r.plan.steps[stream.step - 1].words_end;
  const uint32_t count = r.plan.steps[stream.step].words_end - begin;
  bool complete = true;
  for (uint32_t k = 0; k < count; ++k) {
    if ((stream.taken >> k & 1) != 0) continue;
    const uint64_t bank = uint64_t{1}
                          << Plan::word(r.plan.words[begin + k]) / static_cast<uint32_t>(m_.words_per_bank());
    if ((busy & bank) != 0) {
      complete = false;
      continue;
    }
    busy |= bank;
    stream.taken |= uint64_t{1} << k;
  }
  if (!complete) {
    ++counts.bank_stalls;
    return false;
  }
  stream.taken = 0;
  ++stream.step;
  return true;
}

bool Simulation::step(int queue, uint64_t& busy) {
  Running* r = units_[queue].current();
  if (r == nullptr) return false;
  if (queue == static_cast<int>(Queue::kLoad) && now_ < r->span.start + m_.latency) return false;
  QueueCounts& counts = result_.queues[queue];
  if (!r->first.done()) {
    const uint8_t bus = r->plan.steps[r->first.step].bus;
    if (bus != 0 && bus_owner_ != queue) {
      ++counts.bus_waits;
      return true;
    }
    if (!r->begun) r->span.first_step = now_;
    r->begun = true;
    if (step_stream(*r, r->first, counts, busy)) {
      if ((bus & Plan::kLast) != 0) bus_owner_ = -1;
      r->first_until = now_ + 1;
    }
  }
  if (!r->second.done()) step_stream(*r, r->second, counts, busy);
  if (r->first.done() && r->second.done()) finish_steps(queue, *r);
  return true;
}

void Simulation::finish_steps(int queue, Running& r) {
  const Op op = code_[r.index].op;
  r.steps_done = true;
  r.span.last_step = now_ + 1;
  r.own_end = now_ + 1;
  if (is_array(op)) {
    if (r.first_until > 0) r.own_end = std::max(r.own_end, r.first_until + m_.array_depth());
  } else if (queue == static_cast<int>(Queue::kCompute)) {
    r.own_end += Machine::kVectorDepth;
  } else if (op == Op::kStore || op == Op::kStoreSums) {
    r.own_end += m_.latency;
  }
}

bool Simulation::step_units() {
  bool any = false;
  uint64_t busy = 0;
  for (int k = 0; k < kQueues; ++k) any |= step(static_cast<int>((now_ + k) % kQueues), busy);
  return any;
}

bool Simulation::all_ended() const {
  return next_ == code_.size() && std::ranges::all_of(units_, [](const Unit& u) { return u.held() == 0; });
}

// The next cycle in which something may happen when nothing did in this one; -1: none.
int64_t Simulation::next_event() {
  int64_t next = -1;
  const auto at = [&](int64_t cycle) {
    if (cycle > now_ && (next < 0 || cycle < next)) next = cycle;
  };
  for (Unit& unit : units_)
    if (!unit.running.empty()) at(unit.running.front().own_end);
  if (const Running* r = units_[static_cast<int>(Queue::kLoad)].current()) at(r->span.start + m_.latency);
  return next;
}

// All queues wait for tokens: names the first instruction of the program that does.
void Simulation::stand_still() {
  uint32_t index = static_cast<uint32_t>(code_.size());
  for (const Unit& unit : units_)
    if (!unit.waiting.empty()) index = std::min(index, unit.waiting.front().index);
  CHECK(index < code_.size()) << "queues stand still, and none waits";
  const int to = static_cast<int>(queue_of(code_[index].op));
  for (int from = 0; from < kQueues; ++from)
    if ((code_[index].waits >> from & 1) != 0 && tokens_[from][to].empty())
      return stop_at(FaultKind::kNoToken, index, no_token_text(static_cast<Queue>(from)));
  CHECK(false) << "an instruction has its tokens and does not start";
}

void Simulation::look_for_unused_tokens() {
  for (int from = 0; from < kQueues; ++from)
    for (int to = 0; to < kQueues; ++to)
      if (!tokens_[from][to].empty())
        stop_at(FaultKind::kUnusedToken, tokens_[from][to].back().giver,
                unused_token_text(static_cast<Queue>(to)));
}

Simulated Simulation::run() {
  while (true) {
    bool any = end_instructions();
    if (all_ended()) break;
    any |= dispatch();
    any |= start_instructions();
    if (result_.fault) return result_;
    grant_bus();
    any |= step_units();
    now_ = any ? now_ + 1 : next_event();
    if (now_ < 0) {
      stand_still();
      return result_;
    }
  }
  look_for_unused_tokens();
  return result_;
}

}  // namespace

double Simulated::utilization(const Machine& machine) const {
  const double peak = static_cast<double>(machine.array_rows * machine.array_columns);
  return cycles == 0 ? 0 : static_cast<double>(macs) / (static_cast<double>(cycles) * peak);
}

Simulated simulate(const Machine& machine, const Code& code, std::span<uint8_t> dram,
                   std::vector<Span>* timeline, ChipMemory* chip) {
  Simulation simulation(machine, code, dram, timeline);
  Simulated result = simulation.run();
  if (chip != nullptr) *chip = simulation.chip();
  return result;
}

}  // namespace tuner::npu
