#include "tuner/gpu_model/gpu_table.h"

#include <algorithm>

#include "compiler_core/base/int_math.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "compiler_core/runtime/tuner_gpu_model.h"
#include "tuner/model/table_writer.h"

namespace tuner {
namespace {

// Structs of tuner_gpu_model.h have the same layout on every CPU that libraries are made for: 64 bits,
// little-endian.
static_assert(sizeof(tuner_gpu_launch) == 48 && sizeof(tuner_gpu_kernel) == 48 &&
              sizeof(tuner_gpu_step) == 16 && sizeof(tuner_gpu_variant) == 48);

constexpr int64_t kWorkspaceAlignment = 256;

// The cubin among a kernel's files.
Result<std::string_view> cubin_of(const BundleKernel& kernel) {
  for (const ShippedKernel::File& file : kernel.code.files)
    if (file.role == "cubin") return std::string_view(file.bytes);
  return invalid_argument(kernel.task.key, ": its kernel is no cubin, which models for GPUs need");
}

Status check_launches(const BundleKernel& kernel) {
  for (const LaunchInfo& launch : kernel.code.manifest.launches) {
    if (!launch.tensor_maps.empty())
      return invalid_argument(kernel.task.key, ": kernel ", launch.kernel,
                              " copies by tensor maps, which models for GPUs have not yet");
    if (!launch.scalars.empty())
      return invalid_argument(kernel.task.key, ": kernel ", launch.kernel,
                              " takes numbers, which models for GPUs do not pass");
  }
  return Status::ok();
}

template <class T>
size_t put_all(TableWriter& table, const std::vector<T>& items) {
  return table.put(items.data(), items.size());
}

void put_launches(TableWriter& table, size_t at, const Manifest& manifest) {
  std::vector<tuner_gpu_launch> launches;
  for (const LaunchInfo& info : manifest.launches) {
    tuner_gpu_launch& launch = launches.emplace_back();
    for (size_t d = 0; d < 3; ++d) {
      launch.grid[d] = static_cast<uint32_t>(info.grid[d]);
      launch.block[d] = static_cast<uint32_t>(info.block[d]);
    }
    launch.shared_bytes = static_cast<uint32_t>(info.shared_bytes);
    launch.num_params = static_cast<int32_t>(info.params.size());
  }
  const size_t begin = put_all(table, launches);
  table.point(at + offsetof(tuner_gpu_kernel, launches), begin);
  for (size_t l = 0; l < launches.size(); ++l) {
    const size_t launch = begin + l * sizeof(tuner_gpu_launch);
    const LaunchInfo& info = manifest.launches[l];
    table.text(launch + offsetof(tuner_gpu_launch, symbol), info.kernel);
    table.point(launch + offsetof(tuner_gpu_launch, params),
                put_all(table, std::vector<int32_t>(info.params.begin(), info.params.end())));
  }
}

Result<size_t> put_kernels(TableWriter& table, const ModelToPack& model) {
  std::vector<tuner_gpu_kernel> kernels;
  for (const BundleKernel& k : model.kernels) {
    RETURN_IF_ERROR(check_launches(k));
    ASSIGN_OR_RETURN(const std::string_view cubin, cubin_of(k));
    tuner_gpu_kernel& kernel = kernels.emplace_back();
    kernel.image_bytes = static_cast<int64_t>(cubin.size());
    kernel.num_launches = static_cast<int32_t>(k.code.manifest.launches.size());
    kernel.num_workspaces = static_cast<int32_t>(k.code.manifest.workspaces.size());
    kernel.num_args = static_cast<int32_t>(k.code.manifest.args.size());
  }
  const size_t begin = put_all(table, kernels);
  for (size_t k = 0; k < kernels.size(); ++k) {
    const size_t at = begin + k * sizeof(tuner_gpu_kernel);
    const BundleKernel& kernel = model.kernels[k];
    ASSIGN_OR_RETURN(const std::string_view cubin, cubin_of(kernel));
    table.point(at + offsetof(tuner_gpu_kernel, image), table.put_file(cubin));
    put_launches(table, at, kernel.code.manifest);
    std::vector<int64_t> workspaces;
    int64_t offset = 0;
    for (const int64_t bytes : kernel.code.manifest.workspaces) {
      workspaces.push_back(offset);
      offset += round_up(bytes, kWorkspaceAlignment);
    }
    table.point(at + offsetof(tuner_gpu_kernel, workspaces), put_all(table, workspaces));
  }
  return begin;
}

size_t put_steps(TableWriter& table, const ModelToPack& model, const PlacedModel& placed) {
  std::vector<tuner_gpu_step> steps(placed.steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    steps[s].num_args = static_cast<int32_t>(placed.steps[s].args.size());
    steps[s].kernel = static_cast<int32_t>(model.kernel_of_step[s]);
  }
  const size_t begin = put_all(table, steps);
  for (size_t s = 0; s < steps.size(); ++s)
    table.point(begin + s * sizeof(tuner_gpu_step) + offsetof(tuner_gpu_step, args),
                put_all(table, placed.steps[s].args));
  return begin;
}

// "sm_90a": 90, and that it is for this one alone.
Status set_architecture(const Target& target, tuner_gpu_variant& variant) {
  variant.sm = static_cast<int32_t>(target.compute_capability());
  variant.only_this = target.arch.ends_with('a') ? 1 : 0;
  return variant.sm > 0 ? Status::ok() : invalid_argument(target.name(), ": names no architecture");
}

Status put_variants(TableWriter& table, std::span<const ModelToPack> models,
                    std::span<const PlacedModel> placed) {
  std::vector<tuner_gpu_variant> variants;
  for (const ModelToPack& model : models) {
    tuner_gpu_variant& variant = variants.emplace_back();
    RETURN_IF_ERROR(set_architecture(model.target, variant));
    variant.num_kernels = static_cast<int32_t>(model.kernels.size());
    for (const BundleKernel& k : model.kernels) {
      variant.workspace_bytes = std::max(variant.workspace_bytes, gpu_workspace_bytes(k.code.manifest));
      variant.toolkit = std::max(variant.toolkit, toolkit_major(k.code.manifest.toolchain));
    }
  }
  const size_t begin = put_all(table, variants);
  table.point(offsetof(tuner_gpu_model, variants), begin);
  for (size_t v = 0; v < variants.size(); ++v) {
    const size_t at = begin + v * sizeof(tuner_gpu_variant);
    table.text(at + offsetof(tuner_gpu_variant, arch), models[v].target.arch);
    ASSIGN_OR_RETURN(const size_t kernels, put_kernels(table, models[v]));
    table.point(at + offsetof(tuner_gpu_variant, kernels), kernels);
    table.point(at + offsetof(tuner_gpu_variant, steps), put_steps(table, models[v], placed[v]));
  }
  return Status::ok();
}

// Names and workloads of the steps: all that programs which only list them want.
size_t put_step_names(TableWriter& table, const ModelToPack& model) {
  std::vector<tuner_step> steps(model.model.steps.size());
  for (size_t s = 0; s < steps.size(); ++s) steps[s].kernel = static_cast<int32_t>(model.kernel_of_step[s]);
  const size_t begin = put_all(table, steps);
  for (size_t s = 0; s < steps.size(); ++s) {
    const size_t at = begin + s * sizeof(tuner_step);
    table.text(at + offsetof(tuner_step, name), model.model.steps[s].name);
    table.text(at + offsetof(tuner_step, workload), model.kernels[model.kernel_of_step[s]].task.key);
  }
  return begin;
}

}  // namespace

int64_t gpu_workspace_bytes(const Manifest& manifest) {
  int64_t bytes = 0;
  for (const int64_t each : manifest.workspaces) bytes += round_up(each, kWorkspaceAlignment);
  return bytes;
}

Result<ConstantTable> gpu_table(std::span<const ModelToPack> variants, std::span<const PlacedModel> placed) {
  const ModelToPack& model = variants.front();
  TableWriter table(table_symbol(model.name));
  tuner_gpu_model head{};
  head.model = table_head(model, placed.front());
  head.model.version = TUNER_GPU_MODEL_VERSION;
  head.num_variants = static_cast<int32_t>(variants.size());
  table.put(&head, 1);
  point_head(table, model, placed.front());
  table.point(offsetof(tuner_model, steps), put_step_names(table, model));
  RETURN_IF_ERROR(put_variants(table, variants, placed));
  return table.finish();
}

}  // namespace tuner
