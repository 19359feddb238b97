// A temporary folder with a database of tuned configs, and the answers that kernels must give.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/oracle/oracle.h"
#include "db/store.h"
#include "deploy/runtime/tuner_runtime_api.h"
#include "templates/schedule_template.h"
#include "templates/workload/workload_json.h"
#include "tests/random_numbers.h"
#include "tests/support/temporary_folder.h"

namespace tuner::testing {

namespace fs = std::filesystem;

// Odd sizes, several constants, weights that are packed.
inline const std::string kMatmul =
    R"({"op":"matmul","a":[13,37],"b":[37,51],"bias":true,"activation":"relu","constant":["b","bias"]})";
inline const std::string kConv =
    R"({"op":"conv2d","data":[1,6,9,11],"weight":[20,6,3,3],"padding":[1,1],"constant":["weight"]})";
inline const std::string kSoftmax = R"({"op":"softmax","rows":9,"columns":70})";

inline Workload workload_of(const std::string& json) {
  Result<Workload> workload = workload_from_json(json);
  CHECK(workload.is_ok()) << workload.message();
  return *std::move(workload);
}

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeTest() {
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ::unsetenv("TUNER_CAPTURE");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // t.db gets a job with one measured trial: a config that packs, drawn at random, so neither the default nor
  // one that the resolver could guess. Returns it.
  std::string tune(const std::string& json, int threads = 1, const std::string& digest = {},
                   Constants constants = Constants::kWarm) {
    const Workload workload = workload_of(json);
    const Target target = host_target(threads);
    const auto serving = templates_for(workload, target, "direct");
    CHECK(serving.is_ok()) << serving.message();
    const AnyTemplate& chosen = *serving->front();
    const auto instance = chosen.apply(workload, target);
    CHECK(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const std::string config =
        space.at((space.default_index() + 1 + space.size() / 3) % space.size()).to_text();
    auto store = Store::open(path("t.db"), Store::Mode::kWrite);
    CHECK(store.is_ok()) << store.message();
    JobRow job{.id = str("j", ++jobs_),
               .request_id = str("r", jobs_),
               .tasks = {{workload.key(), target.name(), "", 1, constants}},
               .trials = 1,
               .search = "random"};
    CHECK((*store)->add_job(job).is_ok()) << "add_job";
    std::vector<TrialRow> trials(1);
    trials[0].job_id = job.id;
    trials[0].template_name = chosen.name();
    trials[0].template_version = chosen.version();
    trials[0].config = config;
    CHECK((*store)->add_trials(trials).is_ok()) << "add_trials";
    MeasureRecord record;
    record.trial_id = trials[0].id;
    record.run_ns = {1000, 1001, 1002};
    record.artifact_digest = digest;
    record.environment.toolchain = toolchain_fingerprint();
    CHECK((*store)->add_records({record}).is_ok()) << "add_records";
    return config;
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  int jobs_ = 0;
};

// Operands of a workload in memory as the library wants them, with the oracle's answer.
class Operands {
 public:
  explicit Operands(const std::string& json, uint64_t seed = 1) : workload_(workload_of(json)) {
    const Program math = workload_.compute();
    std::mt19937_64 random(seed);
    std::vector<std::vector<double>> values;
    for (const Buffer& b : math.args) {
      std::vector<double>& v = values.emplace_back();
      auto* memory = static_cast<float*>(tuner_allocate(static_cast<size_t>(b->bytes())));
      memory_.push_back(memory);
      constant_.push_back(b->role == BufferRole::kConstant);
      if (b->role == BufferRole::kOutput) {
        for (int64_t i = 0; i < b->elements(); ++i) memory[i] = std::nanf("");
        continue;
      }
      for (int64_t i = 0; i < b->elements(); ++i) {
        v.push_back(random_number(random, b->dtype));
        memory[i] = static_cast<float>(v.back());
      }
    }
    CHECK(interpret(math, values).is_ok()) << "the oracle refuses " << workload_.key();
    expected_ = values.back();
  }
  ~Operands() {
    for (void* p : memory_) tuner_free(p);
  }
  Operands(const Operands&) = delete;

  void** pointers() { return memory_.data(); }
  const void* const* constants() const { return memory_.data(); }
  // Null where a constant is: run() must not look there.
  std::vector<void*> without_constants() const {
    std::vector<void*> pointers = memory_;
    for (size_t i = 0; i < pointers.size(); ++i)
      if (constant_[i]) pointers[i] = nullptr;
    return pointers;
  }
  size_t wrong() const {  // elements of the output
    const auto* out = static_cast<const float*>(memory_.back());
    const Tolerance t = tolerance_of(workload_);
    size_t n = 0;
    for (size_t i = 0; i < expected_.size(); ++i)
      n += std::abs(out[i] - expected_[i]) <= t.absolute + t.relative * std::abs(expected_[i]) ? 0 : 1;
    return n;
  }
  void poison() {
    auto* out = static_cast<float*>(memory_.back());
    for (size_t i = 0; i < expected_.size(); ++i) out[i] = std::nanf("");
  }

 private:
  Workload workload_;
  std::vector<void*> memory_;
  std::vector<bool> constant_;
  std::vector<double> expected_;
};

// Runs one find -> pack -> run of the workload; the number of wrong elements, or what failed.
inline std::string use_once(tuner_source* source, const std::string& json) {
  tuner_function* f = nullptr;
  if (tuner_find(source, json.c_str(), &f) != TUNER_OK) return tuner_last_error();
  Operands operands(json);
  tuner_packed* packed = nullptr;
  std::string problem;
  if (tuner_pack(f, operands.constants(), &packed) != TUNER_OK ||
      tuner_run(f, packed, operands.without_constants().data()) != TUNER_OK)
    problem = tuner_last_error();
  else if (operands.wrong() != 0)
    problem = str(operands.wrong(), " elements of ", json, " are wrong");
  tuner_free_packed(packed);
  tuner_release(f);
  return problem;
}

}  // namespace tuner::testing
