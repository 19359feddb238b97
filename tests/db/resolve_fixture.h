// A database of matrix products whose times are a formula, so that what is learned from it can be judged.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "db/resolve/resolve.h"
#include "templates/space/knob.h"
#include "tests/db/store_fixture.h"

namespace tuner {

inline Workload product(int64_t m, int64_t n, int64_t k, bool bias = false) {
  MatmulWorkload w;
  w.m = m;
  w.n = n;
  w.k = k;
  w.bias = bias;
  return w;
}

inline Target target(const std::string& text) {
  Result<Target> parsed = parse_target(text);
  CHECK(parsed.is_ok()) << parsed.message();
  return *std::move(parsed);
}

inline const AnyTemplate& matmul() { return *find_template("matmul_cpu"); }

// Some valid config, not the default.
inline std::string other_config(const Workload& w, const Target& t) {
  const auto instance = matmul().apply(w, t);
  const ConfigSpace& space = (*instance)->space();
  return space.at(space.default_index() == 0 ? 1 : 0).to_text();
}

class ResolveFixture : public testing::Test {
 protected:
  // Measured trials of a task, in a job of its own; returns their ids.
  std::vector<std::string> tuned(const Workload& w, const Target& t,
                                 const std::vector<std::pair<std::string, double>>& configs_ns,
                                 int version = matmul().version()) {
    const std::string job = "j" + std::to_string(++jobs_);
    EXPECT_TRUE(store_->add_job(job_row(job, {{w.key(), t.name()}})));
    std::vector<TrialRow> rows;
    for (const auto& [config, ns] : configs_ns) {
      rows.push_back(trial_row(job, config));
      rows.back().template_name = "matmul_cpu";
      rows.back().template_version = version;
    }
    EXPECT_TRUE(store_->add_trials(rows));
    std::vector<std::string> ids;
    ids.reserve(rows.size());
    for (const TrialRow& row : rows) ids.push_back(row.id);
    EXPECT_TRUE(store_->lease_trials(ids, "w1"));
    std::vector<MeasureRecord> records;
    for (size_t i = 0; i < rows.size(); ++i) {
      const double ns = configs_ns[i].second;
      records.push_back(ok_record(ids[i], {ns, ns * 1.01, ns * 0.99}));
    }
    EXPECT_TRUE(store_->add_records(records));
    return ids;
  }

  // Trials of `count` random configs and the default, timed by `ns(config, space)`.
  template <class F>
  void tune_by_formula(const Workload& w, const Target& t, int count, F ns) {
    const auto instance = matmul().apply(w, t);
    const ConfigSpace& space = (*instance)->space();
    std::mt19937_64 random(static_cast<uint64_t>(jobs_) + 1);
    std::vector<std::pair<std::string, double>> trials;
    const auto add = [&](ConfigIndex index) {
      const Config config = space.at(index);
      trials.emplace_back(config.to_text(), ns(config, space));
    };
    add(space.default_index());
    for (int i = 0; i < count; ++i) add(space.sample(random));
    tuned(w, t, trials);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = must_open(folder_.file("t.db"));
  int jobs_ = 0;
  const Target cpu_ = target("llvm -mcpu=haswell -threads=1");
};

}  // namespace tuner
