// Describes the fields of a measure record, once for all users.
//
// describe() hands each field to `f`, with its name and what is known about it. Database rows, table
// definitions, messages, JSON lines, CSV, checks, records.schema.json and the list in records_format.md are
// each such an `f`; none of them names a field. Columns and lines have the fields in this order.
//
// An `f` has these members. A reader takes the values by reference, a writer by const reference:
//   f(field, value)           of int, int64_t, double, bool, std::string, std::vector<double>, Outcome,
//                             Constants
//   f.derived(field, get)     get() follows from other fields: it is written, and skipped where it is read
//   f.time(field, us)         a time of day
//   f.part(name, fields)      its fields stand among the others; in a message it is a part of its own
//   f.object(field, options)  one column, one value of a line: a JSON object
// To add a field: db/README.md.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "db/records.h"

namespace tuner {

// Limits what a number may be.
enum class Rule : uint8_t {
  kFinite,
  kAtLeastZero,  // and finite
  kCallTime,     // a time of one call, as plausible.h bounds it
  kError,        // at least 0; infinite where an output is not a number
};

struct Field {
  const char* name;            // of the column and of the message's field
  const char* meaning;         // one line, with the unit and what 0 or nothing means
  const char* key = nullptr;   // in a line, where it is not the name
  const char* wire = nullptr;  // in the message, where it is not the name
  Rule rule = Rule::kAtLeastZero;
  int64_t least = 0, most = 1 << 30;  // of an integer
  bool optional = false;              // a line may lack it; it then has the default of a new record
  bool unless_empty = false;          // a line leaves it out if it is empty
  bool zero_counts = false;  // options only: 0 is a real value, sent as -1, because 0 means the default in a
                             // message

  const char* json_key() const { return key != nullptr ? key : name; }
  const char* wire_name() const { return wire != nullptr ? wire : name; }
};

template <class T, class Described>
concept EitherConst = std::same_as<std::remove_const_t<T>, Described>;

// How the measurement was made.
template <EitherConst<MeasureOptions> Options, class Fields>
void describe(Options& o, Fields& f) {
  f({.name = "min_repeat_ms", .meaning = "one sample is as many calls as fill this"}, o.min_repeat_ms);
  f({.name = "repeats", .meaning = "samples, at most", .least = 1, .most = 10'000}, o.repeats);
  f({.name = "build_timeout_s", .meaning = "limit of a build"}, o.build_timeout_s);
  f({.name = "run_timeout_s", .meaning = "wall clock of the whole run of a candidate"}, o.run_timeout_s);
  f({.name = "memory_limit_bytes",
     .meaning = "resident size of the candidate's process, its page tables and what it swapped",
     .least = 1,
     .most = int64_t{1} << 50},
    o.memory_limit_bytes);
  f({.name = "cut_factor",
     .meaning = "stopped when a warm sample is this much slower than the best; negative: never",
     .rule = Rule::kFinite},
    o.cut_factor);
  f({.name = "precision",
     .meaning = "sampling stops when the interval is this narrow, as a fraction; 0: never",
     .rule = Rule::kFinite,
     .optional = true,
     .zero_counts = true},
    o.precision);
  f({.name = "constants",
     .meaning = "where constants lay when calls were timed: warm, as a loop of calls leaves them, or cold, "
                "flushed before each call; missing: warm",
     .optional = true},
    o.constants);
}

// Where and with what the measurement was made.
template <EitherConst<Environment> E, class Fields>
void describe(E& e, Fields& f) {
  f({.name = "hardware", .meaning = "fingerprint of the machine"}, e.hardware);
  f({.name = "toolchain", .meaning = "fingerprint of the compiler"}, e.toolchain);
  f({.name = "harness_abi",
     .meaning = "grows when candidates are run, checked or timed in another way",
     .least = 1,
     .most = 1 << 20},
    e.harness_abi);
  f({.name = "worker_id", .meaning = "who measured it", .key = "worker"}, e.worker_id);
  f({.name = "worker_incarnation", .meaning = "new at every start of the worker", .optional = true},
    e.worker_incarnation);
  f({.name = "host", .meaning = "the worker's machine"}, e.host);
}

// All fields of a record except its trial.
template <EitherConst<MeasureRecord> Record, class Fields>
void describe(Record& r, Fields& f) {
  f({.name = "attempt", .meaning = "of its trial, from 1"}, r.attempt);
  f({.name = "outcome", .meaning = "what came out; only ok has times"}, r.outcome);
  f({.name = "cut", .meaning = "ok, but stopped after a slow sample: times are bounds"}, r.cut);
  f({.name = "message", .meaning = "one line for people; empty when ok"}, r.message);
  f.derived({.name = "time_ns",
             .meaning = "median of run_ns, 0 unless ok; written for readers, computed anew when imported"},
            [&r] { return record_time_ns(r); });
  f({.name = "run_ns", .meaning = "every sample, ns a call, in the order taken", .rule = Rule::kCallTime},
    r.run_ns);
  f({.name = "cpu_ns", .meaning = "thread CPU time of the same samples"}, r.cpu_ns);
  f({.name = "sentinel_before_ns",
     .meaning = "a fixed kernel timed before: shows a noisy or throttled device"},
    r.sentinel_before_ns);
  f({.name = "sentinel_after_ns", .meaning = "the same after"}, r.sentinel_after_ns);
  f({.name = "queue_ms", .meaning = "between lease and start of the build"}, r.queue_ms);
  f({.name = "build_ms", .meaning = "wall clock of the build"}, r.build_ms);
  f({.name = "run_ms", .meaning = "wall clock of the run, all of it"}, r.run_ms);
  f({.name = "max_error", .meaning = "in tolerances; <= 1 is right", .rule = Rule::kError}, r.max_error);
  f({.name = "peak_gflops", .meaning = "the most the machine does with the target's threads"}, r.peak_gflops);
  f({.name = "artifact_digest", .meaning = "SHA-256 of what was measured", .key = "artifact"},
    r.artifact_digest);
  f.part("environment", r.environment);
  f.object({.name = "options", .meaning = "how it was measured"}, r.options);
  f.time({.name = "finished_at_us",
          .meaning = "when it was finished, by the worker's clock; UTC with microseconds, empty when unknown",
          .key = "when",
          .wire = "finished_at"},
         r.finished_at_us);
  f({.name = "device_state",
     .meaning = "of a GPU right after timing: clocks, temperature, throttling; left out when there is none",
     .optional = true,
     .unless_empty = true},
    r.device_state);
  f({.name = "memory_sentinel_before_ns",
     .meaning = "time of the sentinel that feels memory, before; 0: not timed",
     .optional = true},
    r.memory_sentinel_before_ns);
  f({.name = "memory_sentinel_after_ns", .meaning = "the same after", .optional = true},
    r.memory_sentinel_after_ns);
  f({.name = "discarded",
     .meaning = "runs of this trial that were thrown away because they were disturbed",
     .most = 1 << 20,
     .optional = true},
    r.discarded);
  f({.name = "read_gbps",
     .meaning = "GB/s that the level of cache which holds the operands gives; 0: not known",
     .optional = true},
    r.read_gbps);
  f({.name = "page_faults",
     .meaning =
         "of the candidate's process while it was sampled, minor and major: many tell fresh pages or a "
         "machine that swaps; 0: none, or not counted (GPUs, older records)",
     .optional = true},
    r.page_faults);
  f({.name = "isolation",
     .meaning = "how the candidate was confined when it ran: none, process or strict; landlock for programs "
                "of users; empty: not known",
     .optional = true,
     .unless_empty = true},
    r.isolation);
}

// The same fields as lists, for code that needs names and kinds but no values.
enum class FieldKind : uint8_t {
  kInteger,
  kNumber,
  kFlag,
  kText,
  kNumbers,
  kOutcome,
  kConstants,
  kTime,
  kObject,
};
struct DescribedField {
  Field field;
  FieldKind kind;
};
const std::vector<DescribedField>& record_fields();  // includes those of its environment
const std::vector<DescribedField>& environment_fields();
const std::vector<DescribedField>& options_fields();

}  // namespace tuner
