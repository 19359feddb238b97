#include "templates/registry.h"

#include <algorithm>
#include <atomic>

namespace tuner {

namespace {

std::vector<const AnyTemplate*>& registered() {
  static std::vector<const AnyTemplate*> templates;
  return templates;
}
std::atomic<bool> handed_out{false};

std::vector<const AnyTemplate*> built_in_templates() {
  return {
      &matmul_cpu(),           &matmul_dot_cpu(),        &conv2d_direct_cpu(),
      &depthwise_conv2d_cpu(), &conv2d_1x1_pixels_cpu(), &conv2d_1x1_channels_cpu(),
      &conv2d_winograd2_cpu(), &conv2d_winograd4_cpu(),  &conv2d_winograd6_cpu(),
      &matmul_cuda(),          &conv2d_nchw_cuda(),      &depthwise_conv2d_nchw_cuda(),
      &pool2d_cpu(),           &softmax_cpu(),           &softmax_cuda(),
      &layer_norm_cpu(),       &layer_norm_cuda(),       &reduce_cpu(),
      &reduce_cuda(),          &transpose_cpu(),         &transpose_cuda(),
      &elementwise_cpu(),      &elementwise_cuda(),
  };
}

}  // namespace

RegisterTemplate::RegisterTemplate(const AnyTemplate& schedule_template) {
  CHECK(!handed_out)
      << "template " << schedule_template.name()
      << " is registered after the list of templates was handed out: register it in a variable "
         "of namespace scope";
  registered().push_back(&schedule_template);
}

const std::vector<const AnyTemplate*>& all_templates() {
  static const std::vector<const AnyTemplate*> templates = [] {
    handed_out = true;
    std::vector<const AnyTemplate*> all = built_in_templates();
    for (const AnyTemplate* added : registered()) {
      CHECK(std::ranges::none_of(all, [&](const AnyTemplate* t) { return t->name() == added->name(); }))
          << "two templates are called " << added->name() << ": rename the one that is registered";
      all.push_back(added);
    }
    return all;
  }();
  return templates;
}

}  // namespace tuner
