#include "db/learning/task_shape.h"

#include <algorithm>

namespace tuner {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += str(text.empty() ? "" : ",", w);
  return text.empty() ? "none" : text;
}
// What the permission allows is another space: other templates serve the task.
template <class W>
std::string types(const W& w) {
  return str(" dtype=", dtype_name(w.dtype), w.allow_tf32 ? " tf32" : "");
}
// A packed bias makes no difference to a schedule.
std::string packed(std::vector<std::string> words) {
  std::erase(words, "bias");
  return joined(words);
}

TaskShape of(const MatmulWorkload& w) {
  return {str("matmul ta=", w.transpose_a, " tb=", w.transpose_b, types(w), " const=", packed(w.constant)),
          {{"b", w.batch}, {"m", w.m}, {"n", w.n}, {"k", w.k}}};
}
TaskShape of(const Conv2dWorkload& w) {
  return {str("conv2d", types(w), " layout=", w.layout, " out_layout=", w.out_layout,
              " const=", packed(w.constant)),
          {{"n", w.batch},
           {"oc", w.out_channels},
           {"oh", w.out_height()},
           {"ow", w.out_width()},
           {"ic", w.in_channels / w.groups},
           {"kh", w.kernel_height},
           {"kw", w.kernel_width},
           {"sh", w.stride[0]},
           {"sw", w.stride[1]},
           {"dh", w.dilation[0]},
           {"dw", w.dilation[1]},
           {"groups", w.groups},
           {"pad", 1 + *std::max_element(w.padding.begin(), w.padding.end())}}};
}
TaskShape of(const Pool2dWorkload& w) {
  return {
      str("pool2d pooling=", pooling_name(w.pooling), " dtype=", dtype_name(w.dtype), " layout=", w.layout),
      {{"n", w.batch},
       {"c", w.channels},
       {"oh", w.out_height()},
       {"ow", w.out_width()},
       {"kh", w.kernel_height},
       {"kw", w.kernel_width},
       {"sh", w.stride[0]},
       {"sw", w.stride[1]},
       {"pad", 1 + *std::max_element(w.padding.begin(), w.padding.end())}}};
}
// Programs have no family of shapes: what was learned of one says nothing of another.
TaskShape of(const ProgramWorkload& w) { return {str("program ", w.text), {}}; }
// The operators on the rows of a matrix.
template <class W>
TaskShape of(const W& w) {
  std::string variant = str(W::kOp, " dtype=", dtype_name(w.dtype));
  if constexpr (requires { w.reduction; }) variant += str(" reduction=", row_reduction_name(w.reduction));
  if constexpr (requires { w.scale; }) variant += str(" scale=", w.scale);
  return {std::move(variant), {{"rows", w.rows}, {"columns", w.columns}}};
}

}  // namespace

TaskShape shape_of(const Workload& workload) {
  return std::visit([](const auto& w) { return of(w); }, workload.op());
}

std::string key_without_epilogue(const Workload& workload) {
  return std::visit(
      [](auto w) {
        // An elementwise workload is its epilogue.
        if constexpr (requires { w.constant; }) {
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
