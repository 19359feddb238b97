// RecordedRoofs: the least time that a call of a task can take on the machines of a target, from the peaks
// and bandwidths that its records tell. It needs no device.
//
// A probe of a peak may be taken at a bad moment, so what a kernel has reached raises the roof: no recorded
// time is ever below the bound of its task. Work that an implementation may leave out is not counted:
// products with padding and, where a Winograd template serves the task, what the largest of its tiles saves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "compiler_core/target.h"
#include "templates/workload/workload.h"

namespace tuner {

class RecordedRoofs {
 public:
  // Takes the peak and bandwidth that a record of the task tells (0: not known) and a time that a kernel
  // took; 0: none did. `direct`: the kernel does all products.
  void add(const Workload& workload, const Target& target, double peak_gflops, double read_gbps,
           double time_ns, bool direct);

  // 0: not known, for nothing was measured on such a target. `algorithms`: as in JobRow::Task.
  double bound_ns(const Workload& workload, const Target& target, std::string_view algorithms = {}) const;

 private:
  struct Machine {
    std::map<DType, double> gflops;
    std::map<int64_t, double> gbps;  // by the bytes of a task: its operands lie in the level they fit
  };
  std::map<std::string, Machine> machines_;  // by the target's name
};

}  // namespace tuner
