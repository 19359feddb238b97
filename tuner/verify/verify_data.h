// What `tuner verify` compares with (a task's inputs and reference answer), and how it draws configs.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "templates/space/config_space.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/workload.h"

namespace tuner {

struct VerifyData {
  Program unscheduled;
  std::vector<std::vector<float>> inputs;    // inputs and constants, in argument order
  std::vector<std::string> given;            // the same as bytes
  std::vector<std::vector<double>> answers;  // outputs, in argument order
  Tolerance tolerance;
};

// What one config showed.
struct ConfigVerdict {
  std::string problem;             // empty: nothing is wrong
  std::string not_checked;         // not empty: why it could not be checked; `problem` is then empty
  int64_t blocks_run = 0;          // of the only kernel when a sample ran, else 0
  std::vector<std::string> notes;  // what is no fault, a line each: what was not looked at
};

// Inputs drawn from `seed`, and the compiled reference's answer to them.
Result<VerifyData> make_verify_data(const Workload& workload, uint64_t seed);

// Interprets `program` and compares every output with the reference answer. Failed: they differ.
Status check_with_oracle(const Program& program, const VerifyData& data);

// Returns distinct configs: the default first, then uniform draws; all configs if there are not more than
// `samples`.
std::vector<ConfigIndex> draw_configs(const ConfigSpace& space, uint64_t samples, std::mt19937_64& random);

}  // namespace tuner
