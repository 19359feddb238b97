#include "templates/workload/needed_work.h"

#include "templates/workload/parts/operator.h"

namespace tuner {

int64_t needed_flops(const Workload& workload) {
  return std::visit([](const auto& w) { return w.facts().needed_flops(w); }, workload.op());
}

}  // namespace tuner
