// RowProgress: how many rows a command that reads or writes many has done.
#pragma once

#include <cstdint>
#include <string>

namespace tuner {

// Shows the rows done so far on stderr: a line that is rewritten on a terminal, else one line every 10
// seconds.
class RowProgress {
 public:
  explicit RowProgress(std::string what, std::string unit = "rows");
  ~RowProgress();
  void operator()(int64_t rows);

 private:
  std::string what_, unit_;
  double begun_s_, told_s_;
  bool terminal_;
};

}  // namespace tuner
