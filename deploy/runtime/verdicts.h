// Verdicts of first uses, kept on disk, so that a kernel is raced once on a machine and not at every start.
//
//   DIR/verdicts/SHA256          named by what was raced and where; text, with that inside
//   DIR/verdicts/SHA256.lock     held by the process that races
//
// Several processes and threads may use a folder: files appear whole, and one that is damaged counts as
// missing. Nothing is ever removed. The folder may be deleted at any time: kernels are then raced again.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "deploy/runtime/first_use.h"

namespace tuner::runtime {

// What a verdict is about: the two kernels, and the machine. Another compiler, config or microcode is another
// one.
std::string verdict_subject(const Function& kernel, const Function& plain, const std::string& hardware);

class Verdicts {
 public:
  // `directory`: of the kernel cache; empty: nothing is kept.
  explicit Verdicts(const std::string& directory)
      : directory_(directory.empty() ? "" : directory + "/verdicts") {}

  // Returns the kept verdict; else what `race` returns, which is then kept. While another process races the
  // same, waits `patience` at most, and then returns undecided, which is not kept. What cannot be written is
  // not kept either.
  FirstUse of(const std::string& subject, const std::function<FirstUse()>& race,
              std::chrono::milliseconds patience = std::chrono::seconds(5)) const;

  // The file of a verdict; empty if nothing is kept.
  std::string file(const std::string& subject) const;

 private:
  std::optional<FirstUse> load(const std::string& subject) const;
  void save(const std::string& subject, const FirstUse& found) const;

  std::string directory_;
};

}  // namespace tuner::runtime
