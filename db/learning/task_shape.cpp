#include "db/learning/task_shape.h"

namespace tuner {

TaskShape shape_of(const Workload& workload) { return workload.shape(); }

std::string key_without_epilogue(const Workload& workload) {
  return std::visit(
      [](auto w) {
        // An elementwise workload is its epilogue, and a program has none.
        if constexpr (requires { w.post; }) {
          w.bias = w.scale = w.residual = w.accumulate = false;
          w.post.clear();
          w.activation = Activation::kNone;
          std::erase(w.constant, "bias");
        }
        return Workload(w).key();
      },
      workload.op());
}

int64_t output_elements(const Workload& workload) {
  const TaskShape shape = shape_of(workload);
  int64_t product = 1;
  for (const auto& [name, extent] : shape.dimensions)
    for (const std::string_view output : {"b", "m", "n", "oc", "c", "oh", "ow", "rows", "columns"})
      if (name == output) product *= extent;
  return product;
}

}  // namespace tuner
