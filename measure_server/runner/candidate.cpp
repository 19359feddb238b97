#include "measure_server/runner/candidate.h"

#include <alloca.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "compiler_core/runtime/flush.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "compiler_core/runtime/thread_pool.h"
#include "compiler_core/runtime/tuner_runtime.h"
#include "measure_server/runner/calm_gate.h"
#include "measure_server/runner/changing_inputs.h"
#include "measure_server/runner/float_mode.h"
#include "measure_server/runner/jail.h"
#include "measure_server/runner/own_stack.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sampling.h"

namespace tuner {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kLoading:
      return "loading";
    case Phase::kPacking:
      return "packing constants";
    case Phase::kFirstRun:
      return "in its first run";
    case Phase::kTiming:
      return "being timed";
    case Phase::kLastRun:
      return "in the run after timing";
    case Phase::kDone:
      return "done";
  }
  return "in an unknown phase";
}

void make_ready(const GuardedBuffer& output, const ArgInfo& arg, const void* before) {
  if (before == nullptr)
    output.fill(poison_byte(arg.dtype));
  else
    std::memcpy(output.data(), before, static_cast<size_t>(arg.bytes));
}

namespace {

// Of this process and all its threads, from its start.
double page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt + usage.ru_majflt);
}

class Child {
 public:
  explicit Child(const CandidatePlan& plan)
      : plan_(plan),
        m_(*plan.manifest),
        report_(*plan.report),
        placement_(plan.placement),
        random_(static_cast<uint32_t>(plan.random % 2'147'483'646 + 1)),
        gate_(
            plan.request->calm_pulse_ns, [this] { return slowest_pulse(); }, [this] { return switches(); }) {
    for (size_t i = 0; i < m_.args.size(); ++i)
      if (plan.args[i].last != nullptr) outputs_.push_back(i);
  }

  // By how much its stack shall begin deeper.
  size_t stack_bytes() { return placement_.stack_bytes(); }

  // Works turn by turn. When nothing is left to do it waits for its end.
  [[noreturn]] void run() {
    report_.fork_cpu_ns = process_cpu_ns();
    clocks_at_start_ = read_clocks();
    std::atomic_ref(report_.arrived).store(1);
    (void)await();
    if (!first() || !(plan_.in_race ? race() : trial())) report_.stopped = 1;
    for (;;) (void)next();
  }

 private:
  void enter(Phase phase) { report_.phase = phase; }

  // --- turns ---

  TurnCommand await() {
    wait_for_turn(report_, turns_++);
    turn_wall_ns_ = monotonic_ns();
    return report_.command;
  }
  // Ends this turn and waits for the next one.
  TurnCommand next() {
    report_.cpu_ns_of_all = process_cpu_ns();
    report_.turns_wall_ns += monotonic_ns() - turn_wall_ns_;
    end_turn(report_);
    return await();
  }

  bool first() {
    started_ns_ = monotonic_ns();
    if (!map_operands() || !load()) return false;
    if (loaded_.pack_entry != nullptr) {
      enter(Phase::kPacking);
      if (!call(loaded_.pack_entry, pack_args_)) return false;
    }
    enter(Phase::kFirstRun);
    if (!call(loaded_.entry, first_args_) || !healthy()) return false;
    for (size_t i = 0; i < m_.args.size(); ++i) {
      const CandidatePlan::Operand& a = plan_.args[i];
      if (a.first == nullptr) continue;
      a.first->make_read_only();
      if (a.data != nullptr) std::copy_n(a.first->data(), m_.args[i].bytes, answers_.at(i).begin());
    }
    enter(Phase::kTiming);
    constants_ = constants();
    return true;
  }

  bool trial() {
    const double faults_before = page_faults();
    if (!time() || !settle()) return false;
    tell("page_faults", page_faults() - faults_before);
    report_.sampled = 1;
    if (report_.cut != 0) {
      enter(Phase::kDone);
      return healthy();
    }
    if (!proved_ && next() != TurnCommand::kFinish) return false;
    return last();
  }

  bool race() {
    while (next() == TurnCommand::kSample)
      if (!time_turn()) return false;
    return last();
  }

  // Our own hands on all operands come first, and every thread is awake: what is compared with the timed
  // calls is the work, not the way from memory. The addresses are those of the timed calls, and the outputs
  // hold the answer of the one before: who works only where he finds poison, or another buffer, is found.
  bool prove() {
    proved_ = true;
    if (!show_inputs(report_.inputs)) return false;
    for (size_t i = 0; i < m_.args.size(); ++i) {
      if (before(i) != nullptr) make_ready(*plan_.args[i].last, m_.args[i], before(i));
      const auto* const data = static_cast<const volatile char*>(last_args_[i]);
      for (int64_t at = 0; at < m_.args[i].bytes; at += 64) (void)data[at];
    }
    wake_threads();
    const double before = thread_cpu_ns();
    if (!call(loaded_.entry, last_args_)) return false;
    report_.proof_ns = thread_cpu_ns() - before;
    for (const size_t i : outputs_) {
      plan_.args[i].first->make_writable();
      std::copy_n(plan_.args[i].last->data(), m_.args[i].bytes, plan_.args[i].first->data());
    }
    return put_inputs_back();
  }

  bool last() {
    if (!proved_ && !prove()) return false;
    enter(Phase::kLastRun);
    poison();
    if (!call(loaded_.entry, last_args_) || !healthy()) return false;
    enter(Phase::kDone);
    return true;
  }

  // Timed calls add to what an inout holds, again and again, unless it is restored, and inputs may have
  // changed: no answer that could be checked. One call more is.
  bool settle() {
    if (answers_.empty() && !changing_.any()) return true;
    changing_.restore();
    if (!answers_.empty()) poison();
    return call(loaded_.entry, last_args_);
  }

  // What the argument holds before a call that is checked; null: it is no inout.
  const void* before(size_t i) const {
    const auto found = before_.find(i);
    return found == before_.end() ? nullptr : found->second.data();
  }

  // --- what goes wrong ---

  bool setup_failed(const std::string& why) {
    std::snprintf(report_.setup_error, sizeof report_.setup_error, "%s", why.c_str());
    return false;
  }
  bool load_failed(const std::string& why) {
    std::snprintf(report_.load_error, sizeof report_.load_error, "%s", why.c_str());
    return false;
  }

  // Says a number of the run to whoever writes the record, by the name that its message gives it.
  void tell(const char* name, double value) {
    CandidateReport::Fact& fact = report_.fact[report_.facts++ % CandidateReport::kMaxFacts];
    std::snprintf(fact.name, sizeof fact.name, "%s", name);
    fact.value = value;
  }

  // --- operands ---

  Result<GuardedBuffer> make_buffer(int64_t bytes) {
    return GuardedBuffer::create(bytes, GuardedBuffer::Sharing::kPrivate,
                                 placement_.next(GuardedBuffer::mapped_bytes(bytes)));
  }
  Result<GuardedBuffer> map_sealed(const SealedFile& file) {
    return GuardedBuffer::map_sealed(file.fd(), file.bytes(),
                                     placement_.next(GuardedBuffer::mapped_bytes(file.bytes())));
  }

  // Inputs are mapped once, though constants may stand in both argument lists; packed operands are made
  // here.
  void* operand(const ArgInfo& info, const std::shared_ptr<SealedFile>& data, Status& status) {
    if (const auto it = by_name_.find(info.name); it != by_name_.end()) return it->second.data();
    Result<GuardedBuffer> buffer = data != nullptr ? map_sealed(*data) : make_buffer(info.bytes);
    if (!buffer.is_ok()) {
      status = buffer.status();
      return nullptr;
    }
    // Packing must write all that the kernel reads: what it leaves out is NaN, not a lucky zero.
    if (data == nullptr) buffer->fill(poison_byte(info.dtype));
    return by_name_.emplace(info.name, *std::move(buffer)).first->second.data();
  }

  // A function of a user's, which needs no runtime of ours, sees nothing of who calls it.
  bool hide_from_kernel() {
    if (!plan_.request->wary || !m_.restores_inout || !m_.pack_args.empty()) return true;
    Result<OwnStack> stack = OwnStack::make(placement_);
    if (!stack.is_ok()) return setup_failed(stack.message());
    hidden_ = *std::move(stack);
    const Result<void*const*> first = hidden_->page_of(first_args_), last = hidden_->page_of(last_args_);
    if (!first.is_ok() || !last.is_ok()) return setup_failed((first.is_ok() ? last : first).message());
    hidden_first_ = *first, hidden_last_ = *last;
    return true;
  }

  // Inputs that have another set become a copy of our own, of which elements change.
  bool let_inputs_change() {
    for (size_t i = 0; i < m_.args.size() && plan_.request->wary && !others_.empty(); ++i) {
      const auto other = others_[0].find(m_.args[i].name);
      if (other == others_[0].end()) continue;
      GuardedBuffer& shown = by_name_.at(m_.args[i].name);
      Result<GuardedBuffer> copy = make_buffer(m_.args[i].bytes);
      if (!copy.is_ok()) return setup_failed(copy.message());
      std::copy_n(shown.data(), m_.args[i].bytes, copy->data());
      copy->make_read_only();
      originals_.emplace(i, std::exchange(shown, *std::move(copy)));
      first_args_[i] = last_args_[i] = shown.data();
      changing_.add(shown, m_.args[i].dtype, other->second.data(), random_);
    }
    return true;
  }

  // The inputs of this set take the place of those of the timed calls, which are kept aside.
  bool show_inputs(uint32_t set) {
    if (set == 0 || set > others_.size()) return true;
    for (auto& [name, buffer] : others_[set - 1]) {
      const GuardedBuffer& shown = by_name_.at(name);
      Result<void*> aside = shown.set_aside();
      if (!aside.is_ok()) return setup_failed(aside.message());
      aside_.emplace_back(&shown, *aside);
      if (const Status moved = shown.take_pages_of(buffer); !moved.is_ok())
        return setup_failed(moved.message());
    }
    return true;
  }
  bool put_inputs_back() {
    for (const auto& [buffer, pages] : aside_)
      if (const Status moved = buffer->put_back(pages); !moved.is_ok()) return setup_failed(moved.message());
    aside_.clear();
    return true;
  }

  bool map_others() {
    for (size_t i = 0; i < m_.args.size(); ++i) {
      const auto& files = plan_.args[i].others;
      others_.resize(std::max(others_.size(), files.size()));
      for (size_t set = 0; set < files.size(); ++set) {
        Result<GuardedBuffer> buffer = map_sealed(*files[set]);
        if (!buffer.is_ok()) return setup_failed(buffer.message());
        others_[set].emplace(m_.args[i].name, *std::move(buffer));
      }
    }
    return true;
  }

  bool map_operands() {
    Status status;
    for (size_t i = 0; i < m_.args.size(); ++i) {
      const CandidatePlan::Operand& o = plan_.args[i];
      if (o.first != nullptr) {
        o.first->populate();
        o.last->populate();
        first_args_.push_back(o.first->data());
        last_args_.push_back(o.last->data());
        if (o.data == nullptr) continue;
        Result<GuardedBuffer> buffer = map_sealed(*o.data);
        if (!buffer.is_ok()) return setup_failed(buffer.message());
        before_.emplace(i, *std::move(buffer));
        answers_[i].resize(static_cast<size_t>(m_.args[i].bytes));
      } else {
        first_args_.push_back(operand(m_.args[i], o.data, status));
        last_args_.push_back(first_args_.back());
      }
    }
    for (size_t i = 0; i < m_.pack_args.size(); ++i)
      pack_args_.push_back(operand(m_.pack_args[i], plan_.pack_args[i].data, status));
    const int64_t workspace = m_.workspace_bytes + m_.threads * m_.workspace_bytes_per_thread;
    if (status.is_ok() && workspace > 0) {
      Result<GuardedBuffer> buffer = make_buffer(workspace);
      if (!buffer.is_ok()) return setup_failed(buffer.message());
      workspace_ = *std::move(buffer);
      workspace_.fill(0xFF);
    }
    return (status.is_ok() || setup_failed(status.message())) && map_others() && let_inputs_change() &&
           hide_from_kernel();
  }

  // The system's libraries that it needs come in while the host's files can be seen. OpenMP's takes as many
  // threads as the target has.
  bool load_libraries() {
    if (!m_.libraries.empty()) ::setenv("OMP_NUM_THREADS", std::to_string(m_.threads).c_str(), 1);
    for (const std::string& library : m_.libraries)
      if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
        return load_failed(str("this host has no ", library));
    return true;
  }

  // Threads that a candidate starts inherit where this one may run.
  static bool run_on(const std::vector<int>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
    return cpus.empty() || ::sched_setaffinity(0, sizeof set, &set) == 0;
  }

  bool load() {
    if (!load_libraries()) return false;
    if (!plan_.jail->enter(plan_.runner, plan_.shared_object->fd()))
      return setup_failed("the child cannot be kept apart from this host as it was before");
    const std::vector<int>& cpus = plan_.request->cpus;
    try {
      pool_ = m_.own_threads ? std::make_unique<ThreadPool>(1, std::vector<int>())
                             : std::make_unique<ThreadPool>(m_.threads, cpus);
    } catch (const std::system_error& e) {
      return setup_failed(str("the kernel's ", m_.threads, " threads cannot be started: ", e.what()));
    }
    rt_ = pool_->runtime(workspace_.data());
    wake_threads();  // a thread that has not begun yet would make system calls of libc's that are not listed
    if (m_.own_threads && !run_on(cpus)) return setup_failed("its CPUs cannot be chosen");
    if (!plan_.jail->shut(&report_.asked_for_shared, m_.own_threads))
      return setup_failed("the filter of system calls is refused");

    tick_ns_ = ns_of_tick(clocks_at_start_, read_clocks());
    enter(Phase::kLoading);
    placement_.shift_what_is_loaded();
    const KernelLoader* loader = find_kernel_loader(m_.kind);
    if (loader == nullptr)
      return load_failed(str("this runner has no loader for binaries of kind ", m_.kind));
    Result<LoadedKernel> loaded = loader->load(kCandidatePath, m_);
    if (!loaded) return load_failed(loaded.message());
    close(kCandidateFd);  // at level none; else the loader has closed it
    loaded_ = *std::move(loaded);
    float_mode_ = float_mode();  // what loading made of it is its own
    return true;
  }

  bool call(KernelEntry kernel, const std::vector<void*>& args) {
    const int32_t status = hidden_
                               ? hidden_->call(kernel, &args == &first_args_ ? hidden_first_ : hidden_last_)
                               : kernel(args.data(), &rt_);
    if (status == 0) return true;
    report_.kernel_status = status;
    if (loaded_.clock.fault != nullptr)
      std::snprintf(report_.device_fault, sizeof report_.device_fault, "%s", loaded_.clock.fault());
    return false;
  }

  // What a kernel must leave alone: our descriptors, its inputs, the slack around operands only this
  // process sees.
  bool healthy() {
    if (!descriptors_untouched()) report_.descriptors_closed = 1;
    for (const auto& [i, original] : originals_)
      if (std::memcmp(original.data(), last_args_[i], static_cast<size_t>(m_.args[i].bytes)) != 0)
        report_.changed_input = static_cast<uint32_t>(i + 1);
    for (size_t i = 0; i < m_.args.size() && report_.damaged_operand == 0; ++i) {
      const auto it = by_name_.find(m_.args[i].name);
      if (it != by_name_.end() && plan_.args[i].data == nullptr && !it->second.intact())
        report_.damaged_operand = i + 1;
    }
    return report_.descriptors_closed == 0 && report_.damaged_operand == 0 && report_.changed_input == 0 &&
           keeps_float_mode();
  }
  bool keeps_float_mode() {
    if (plan_.request->wary && float_mode() != float_mode_) report_.mode_changed = 1;
    return report_.mode_changed == 0;
  }

  void poison() {
    written_ = false;
    for (const size_t i : outputs_) make_ready(*plan_.args[i].last, m_.args[i], before(i));
  }

  // Constants as the kernel reads them: those that are packed ahead where they lie now.
  std::vector<std::pair<const void*, int64_t>> constants() const {
    std::vector<std::pair<const void*, int64_t>> found;
    for (size_t i = 0; i < m_.args.size(); ++i)
      if (m_.args[i].role == BufferRole::kConstant || m_.args[i].role == BufferRole::kPacked)
        found.emplace_back(last_args_[i], m_.args[i].bytes);
    return found;
  }

  // A few elements of the outputs become what they surely are not; calls must write them again. Where,
  // nobody knows: a kernel that returns when the answer seems to be there would have to look at all of it.
  // Elements of an inout become what they were before the first run; the call has to make of them what that
  // run made.
  void set_spots() {
    constexpr int kSpots = 4, kSpotsBesideThreads = 1;
    spots_.clear();
    if (!written_ || outputs_.empty()) return;
    for (int n = m_.threads == 1 ? kSpots : kSpotsBesideThreads; n > 0; --n) {
      const size_t arg = outputs_[random_() % outputs_.size()];
      const auto bytes = static_cast<size_t>(m_.args[arg].bytes);
      const auto element = static_cast<size_t>(dtype_bytes(m_.args[arg].dtype));
      // Of bytes several side by side: answers at both ends of their range may well be the opposite in the
      // next call, for inputs that changed.
      const size_t size = element == 1 ? std::min(bytes, sizeof Spot::flipped) : element;
      const size_t count = bytes / size;
      Spot spot{.arg = arg,
                .at = static_cast<unsigned char*>(last_args_[arg]) + random_() % count * size,
                .size = size};
      const bool known =
          std::any_of(spots_.begin(), spots_.end(), [&](const Spot& s) { return s.at == spot.at; });
      if (known) continue;
      const auto* const old = static_cast<const unsigned char*>(before(arg));
      // Threads may add in any order, and no two calls then leave the same bits.
      if (old != nullptr && m_.own_threads) continue;
      const size_t place = static_cast<size_t>(spot.at - static_cast<unsigned char*>(last_args_[arg]));
      if (old != nullptr) std::memcpy(spot.at, old + place, size);
      if (old != nullptr) std::memcpy(spot.expected, answers_.at(arg).data() + place, size);
      for (size_t i = 0; i < size && old == nullptr; ++i)
        spot.at[i] = spot.flipped[i] = static_cast<unsigned char>(~spot.at[i]);
      spots_.push_back(spot);
    }
  }
  bool spots_written() {
    written_ = true;
    for (const Spot& s : spots_) {
      const bool in_place = before(s.arg) != nullptr;
      if ((std::memcmp(s.at, in_place ? s.expected : s.flipped, s.size) == 0) != in_place)
        report_.unwritten = static_cast<uint32_t>(s.arg + 1);
    }
    return report_.unwritten == 0;
  }

  // Adds to the sample.
  bool timed(int64_t calls, Sample& s) {
    if (!m_.restores_inout || before_.empty()) return timed_at_once(calls, s);
    for (int64_t i = 0; i < calls; ++i) {
      for (const auto& [arg, bytes] : before_)
        std::memcpy(last_args_[arg], bytes.data(), static_cast<size_t>(m_.args[arg].bytes));
      if (!timed_at_once(1, s)) return false;
    }
    return true;
  }
  bool timed_at_once(int64_t calls, Sample& s) {
    if (calls == 0) return true;
    const double cpu = thread_cpu_ns();
    const uint64_t ticks = steady_ticks();
    const double wall = monotonic_ns();
    for (int64_t i = 0; i < calls; ++i)
      if (!call(loaded_.entry, last_args_)) return false;
    const double took_ns = monotonic_ns() - wall;
    note_piece({took_ns, steady_ticks() - ticks});
    s.run_ns += took_ns;
    s.cpu_ns += thread_cpu_ns() - cpu;
    return keeps_float_mode();
  }

  void note_piece(const CandidateReport::Piece& piece) {
    report_.timed_ticks += piece.ticks;
    report_.timed_wall_ns += piece.wall_ns;
    ++report_.timed_pieces;
    const auto odd_by = [&](const CandidateReport::Piece& p) {
      return static_cast<double>(p.ticks) * tick_ns_ - p.wall_ns;
    };
    if (odd_by(piece) <= least_odd_ns_) return;
    *std::ranges::min_element(report_.odd_pieces, {}, odd_by) = piece;
    least_odd_ns_ = odd_by(*std::ranges::min_element(report_.odd_pieces, {}, odd_by));
  }

  // One of the calls, nobody knows which, has to write the spots: others could do nothing unseen otherwise.
  bool warm_sample(int64_t calls, Sample& s) {
    s.run_ns = s.cpu_ns = 0;
    const auto before = static_cast<int64_t>(random_() % static_cast<uint64_t>(calls));
    if (!timed(before, s)) return false;
    const ChangingInputs::Touch touch = changing_.touch(random_, /*by_turns=*/!answers_.empty());
    // What a call makes of an inout is known for the inputs of the first run alone.
    if (!answers_.empty() && !changing_.is_restored())
      spots_.clear();
    else
      set_spots();
    const Sample so_far = s;
    if (!timed(1, s)) return false;
    changing_.note(touch, m_.threads <= 1 ? s.cpu_ns - so_far.cpu_ns : s.run_ns - so_far.run_ns);
    return spots_written() && timed(calls - before - 1, s);
  }

  // Only the calls are timed. The one before left all other operands warm.
  bool cold_sample(int64_t calls, Sample& s) {
    s = {};
    for (int64_t i = 0; i < calls; ++i) {
      set_spots();
      for (const auto& [data, bytes] : constants_) flush_lines(data, bytes);
      if (!timed(1, s) || !spots_written()) return false;
    }
    return true;
  }

  // Every thread has taken part in a loop when this returns, and spins for a moment.
  void wake_threads() {
    pool_->parallel_for(
        m_.threads, [](void*, int32_t, int32_t, int32_t) {}, nullptr);
  }

  // Of the threads the kernel runs on.
  Pulse slowest_pulse() {
    if (plan_.request->patience_ms <= 0) return {};
    if (m_.threads == 1) return take_pulse();
    pulses_.assign(static_cast<size_t>(m_.threads), {});
    pool_->parallel_for(
        m_.threads,
        [](void* pulses, int32_t begin, int32_t end, int32_t) {
          for (int32_t t = begin; t < end; ++t) static_cast<Pulse*>(pulses)[t] = take_pulse();
        },
        pulses_.data());
    return *std::ranges::max_element(pulses_, {}, &Pulse::even_ns);
  }

  // How often the kernel's threads lost their cores to somebody else. 0.35 us a call, 0.5 with threads.
  int64_t switches() const {
    if (plan_.request->patience_ms <= 0) return 0;
    rusage usage{};
    getrusage(m_.threads == 1 ? RUSAGE_THREAD : RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
  }

  void report_pulses() {
    report_.slices = static_cast<uint32_t>(gate_.slices());
    report_.retaken = static_cast<uint32_t>(gate_.retaken());
    report_.pulse_ns = gate_.low_ns();
    report_.changed_call_ns = changing_.changed_ns();
    report_.same_call_ns = changing_.same_ns();
  }

  bool has_clock() const { return loaded_.clock.ns != nullptr; }

  // What the device's clock says of the call that was the last. It is the sample, since a device's call takes
  // what it takes however busy the host is.
  double take_from_clock(Sample& s) {
    // Nothing on the host disturbs it. So its sentinel always takes the same.
    constexpr double kSentinelNs = 1;
    s.calm = true;
    s.pulse_ns = kSentinelNs;
    return s.run_ns = s.cpu_ns = loaded_.clock.ns();
  }

  // A call is a sample. They stop when the median is known, as all samples do.
  bool time_by_clock() {
    const RunRequest& r = *plan_.request;
    constexpr int kFewest = 3;
    const double stop_at_ns = started_ns_ + r.run_timeout_s * 0.5e9;
    const int most = std::clamp(r.repeats, 1, static_cast<int>(CandidateReport::kMaxSamples));
    for (int i = 0; i < most && (i == 0 || monotonic_ns() < stop_at_ns); ++i) {
      Sample s;
      if (!warm_sample(1, s)) return false;
      take_from_clock(s);
      report_.run_ns[i] = report_.cpu_ns[i] = s.run_ns;
      report_.samples = static_cast<uint32_t>(i + 1);
      if (i == 0 && r.cut_above_ns > 0 && s.run_ns > r.cut_above_ns) {
        report_.cut = 1;
        break;
      }
      const MedianEstimate known = estimate_median({report_.run_ns, report_.run_ns + report_.samples});
      if (i + 1 >= kFewest && r.precision > 0 && known.half_width <= r.precision * known.median) break;
    }
    return true;
  }

  bool time() {
    if (has_clock()) return time_by_clock();
    const RunRequest& r = *plan_.request;
    const bool cold = r.cold_constants && !constants_.empty();
    SamplingOptions options{
        .fill_ns = cold ? 0 : r.min_repeat_ms * 1e6,
        .repeats = std::min(r.repeats, static_cast<int>(CandidateReport::kMaxSamples)),
        .precision = r.precision,
        // Slow kernels: the run after timing must still fit, so sampling ends at half of the time limit.
        .stop_at_ns = started_ns_ + r.run_timeout_s * 0.5e9,
        .cut_above_ns = r.cut_above_ns,
        .slow_above_ns = r.slow_above_ns,
        .slow_by_cpu_time = m_.threads == 1,
        .gate = &gate_};
    gate_.be_patient(r.patience_ms * 1e6);
    Samples samples;
    const auto take = [&](int64_t calls, Sample& s) {
      const bool taken = cold ? cold_sample(calls, s) : warm_sample(calls, s);
      call_ns_ = s.run_ns / static_cast<double>(calls);
      remember_warm(call_ns_);
      return taken;
    };
    options.between = [&] { return pause(options, take); };
    if (!take_samples(options, take, samples)) return false;
    std::copy(samples.run_ns.begin(), samples.run_ns.end(), report_.run_ns);
    std::copy(samples.cpu_ns.begin(), samples.cpu_ns.end(), report_.cpu_ns);
    report_.samples = static_cast<uint32_t>(samples.run_ns.size());
    report_.disturbed = static_cast<uint32_t>(samples.disturbed);
    report_.cut = samples.cut ? 1 : 0;
    if (!compare_inputs(options.stop_at_ns)) return false;
    report_pulses();
    return true;
  }

  // Samples may be few. Single calls follow until it is known how long calls take on inputs that changed.
  bool compare_inputs(double stop_at_ns) {
    for (Sample s; !changing_.is_known() && monotonic_ns() < stop_at_ns;)
      if (!warm_sample(1, s)) return false;
    return true;
  }

  // Where the parent wants it, the turn ends between two samples; the rest follows in the next one, which
  // warms up first. A slow kernel has no time for that.
  bool pause(const SamplingOptions& options, const TakeSample& take) {
    constexpr double kSlowNs = 1e7;
    if (proved_ || std::atomic_ref(report_.pause).load() == 0 || call_ns_ > kSlowNs) return true;
    return settle() && next() == TurnCommand::kFinish && prove() &&
           warm_up(options.fill_ns / kWarmUpSteps, options.warm_up_ns, /*hopeless_ns=*/0, take,
                   /*call_ns=*/nullptr, warm_ns_);
  }

  // The fastest, so that a disturbed call makes no later warm-up end before its time.
  void remember_warm(double call_ns) { warm_ns_ = warm_ns_ > 0 ? std::min(warm_ns_, call_ns) : call_ns; }

  // --- races ---

  void keep(bool ranks, const Sample& s, double calls) {
    if (ranks && !s.calm) report_.disturbed = 1;
    if (!ranks) {
      report_.other_ns[report_.other_samples++] = s.run_ns / calls;
      return;
    }
    report_.run_ns[report_.samples] = s.run_ns / calls;
    report_.pulses_ns[report_.samples] = s.pulse_ns;
    report_.cpu_ns[report_.samples++] = s.cpu_ns / calls;
  }

  bool time_turn_by_clock(int others) {
    Sample s;
    for (int i = 0; i < plan_.samples_of_turn + others; ++i) {
      if (!warm_sample(1, s)) return false;
      take_from_clock(s);
      keep(i < plan_.samples_of_turn, s, 1);
    }
    return settle();
  }

  // A turn warms up first: others have pushed the operands out of the caches. The first time, that says how
  // many calls fill a sample. Then come the samples with warm constants, then those with cold ones; one
  // kind ranks, the other is information.
  bool time_turn() {
    const double fill_ns = plan_.fill_ms * 1e6;
    const auto take = [this](int64_t calls, Sample& s) { return warm_sample(calls, s); };
    const auto take_cold = [this](int64_t calls, Sample& s) { return cold_sample(calls, s); };
    const bool cold_ranks = plan_.request->cold_constants && !constants_.empty();
    const int others = constants_.empty() ? 0 : plan_.others_of_turn;
    const int warm = cold_ranks ? others : plan_.samples_of_turn;
    const int cold = cold_ranks ? plan_.samples_of_turn : others;
    // The parent gives no turn that has no room; a report that a candidate wrote into is refused anyway.
    if (report_.samples + static_cast<uint32_t>(plan_.samples_of_turn) > CandidateReport::kMaxSamples ||
        report_.other_samples + static_cast<uint32_t>(others) > CandidateReport::kMaxSamples)
      return true;
    report_.disturbed = 0;
    written_ = false;  // the parent has poisoned the outputs
    if (has_clock()) return time_turn_by_clock(others);
    gate_.be_patient(plan_.request->patience_ms * 1e6);
    double call_ns = 0;
    if (!warm_up(fill_ns / kWarmUpSteps, kWarmUpNs, /*hopeless_ns=*/0, take, &call_ns, warm_ns_))
      return false;
    remember_warm(call_ns);
    if (calls_ == 0) calls_ = calls_that_fill(fill_ns, call_ns);
    Sample s;
    for (int i = 0; i < warm; ++i) {
      if (!gate_.take(calls_, take, s)) return false;
      keep(!cold_ranks, s, static_cast<double>(calls_));
    }
    for (int i = 0; i < cold; ++i) {
      if (!gate_.take(1, take_cold, s)) return false;
      keep(cold_ranks, s, 1);
    }
    report_pulses();
    return settle();
  }

  // An element of an output that was changed, and what it was made; of an inout what a call has to make of
  // it.
  struct Spot {
    size_t arg = 0;
    unsigned char* at = nullptr;
    size_t size = 0;
    unsigned char flipped[8] = {}, expected[8] = {};
  };

  const CandidatePlan& plan_;
  const Manifest& m_;
  CandidateReport& report_;
  Placement placement_;
  uint32_t turns_ = 0;
  double turn_wall_ns_ = 0;  // when this turn began
  bool proved_ = false;
  double started_ns_ = 0;
  ClockPair clocks_at_start_;
  double tick_ns_ = 0, least_odd_ns_ = 0;  // least: of report_.odd_pieces
  int64_t calls_ = 0;                      // in a sample of a race; 0: it has had no turn that is timed
  double call_ns_ = 0;                     // the latest
  double warm_ns_ = 0;                     // of the fastest call; 0: none yet
  bool written_ = false;                   // a call has written the outputs since they were poisoned
  std::minstd_rand random_;                // a few nanoseconds a number
  std::vector<Spot> spots_;
  std::vector<size_t> outputs_;  // arguments that are outputs
  // Of each inout, by its place: what it holds before a call that is checked, and what the first run made
  // of that.
  std::map<size_t, GuardedBuffer> before_;
  std::map<size_t, std::vector<char>> answers_;
  std::map<std::string, GuardedBuffer> by_name_;
  std::vector<std::map<std::string, GuardedBuffer>> others_;  // the inputs of each further set
  // In a wary run: inputs whose elements change, and what they are in the beginning, by their places.
  std::map<size_t, GuardedBuffer> originals_;
  ChangingInputs changing_;
  uint64_t float_mode_ = 0;  // since it was loaded
  std::optional<OwnStack> hidden_;
  void *const *hidden_first_ = nullptr, *const *hidden_last_ = nullptr;  // first_args_ and last_args_
  // Inputs of the timed calls while others are shown.
  std::vector<std::pair<const GuardedBuffer*, void*>> aside_;
  GuardedBuffer workspace_;
  std::vector<void*> first_args_, last_args_, pack_args_;
  std::vector<std::pair<const void*, int64_t>> constants_;  // with their sizes
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Pulse> pulses_;  // of each thread
  CalmGate gate_;
  tuner_runtime rt_{};
  LoadedKernel loaded_;
};

}  // namespace

void run_candidate(const CandidatePlan& plan) {
  static Child child(plan);  // never destroyed: nothing runs between the last check and the end
  auto* const deeper = static_cast<volatile char*>(alloca(1 + child.stack_bytes()));
  *deeper = 0;
  child.run();
}

}  // namespace tuner
