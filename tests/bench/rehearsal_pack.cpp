// rehearsal_pack JOBFILE -o PACK: a pack for the CUDA driver of ours, so that a visit to a GPU host is
// rehearsed whole where there is no GPU (gpu_host.sh rehearse).
//
// Each product and convolution of the job file becomes one of the same kind with small extents: types,
// layout, epilogue, how operands are stored and all ratios between extents stay. Operators bound by memory
// become a transposition of one row. Each task has three candidates, the second of which is the fastest; the
// pack also has what checks and calibrates.
//
// Exit status: 0 written; 1 it could not be; 2 wrong use.
#include <algorithm>
#include <cstdio>
#include <string>

#include "measure_server/runner/check_kernels.h"
#include "tests/bench/made_up_tasks.h"
#include "tuner/jobs/job_file.h"

namespace tuner {
namespace {

constexpr int kTimes[] = {9000, 7000, 8000};  // nanoseconds of a call of the candidates

// 4096 becomes 32; small extents stay at 8, which tensor cores want to be a multiple of.
int64_t small(int64_t extent) { return std::max<int64_t>(8, (extent / 128 + 7) / 8 * 8); }

Types types_of(DType dtype, DType out, bool tf32) {
  return {.dtype = dtype, .narrow = out == dtype && dtype != DType::kFloat32, .tf32 = tf32};
}

PackTask task_of(MadeUpTasks& tasks, const Workload& workload) {
  PackTask task;
  std::string kernel;
  if (const auto* w = workload.get_if<MatmulWorkload>()) {
    const Product p{.batch = std::min<int64_t>(w->batch, 2),
                    .m = small(w->m),
                    .n = small(w->n),
                    .k = small(w->k),
                    .transpose_a = w->transpose_a,
                    .transpose_b = w->transpose_b,
                    .bias = w->bias,
                    .relu = w->activation == Activation::kRelu,
                    .types = types_of(w->dtype, w->out_dtype(), w->allow_tf32)};
    kernel = p.kernel();
    task = tasks.product(p, kernel);
  } else if (const auto* c = workload.get_if<Conv2dWorkload>()) {
    const bool is_grouped = c->groups > 1;
    const Image image{.batch = std::min<int64_t>(c->batch, 2),
                      .channels = is_grouped ? 8 : small(c->in_channels),
                      .height = c->kernel_height + 4,
                      .width = c->kernel_width + 5,
                      .filters = is_grouped ? 8 : small(c->out_channels),
                      .size = c->kernel_height,
                      .stride = c->stride[0],
                      .padding = c->padding[0],
                      .groups = is_grouped ? 2 : 1,
                      .bias = c->bias,
                      .last = c->layout == "NHWC",
                      .types = types_of(c->dtype, c->out_dtype(), c->allow_tf32),
                      .relu = c->activation == Activation::kRelu};
    kernel = image.kernel();
    task = tasks.convolution(image);
  } else {
    kernel = "copy n=1000";
    task = tasks.copying({"copy"});
  }
  const PackCandidate first = task.candidates.front();
  task.candidates.clear();
  for (const int ns : kTimes) {
    PackCandidate c = first;
    c.config = str("ns=", ns);
    c.artifact.manifest.toolchain = "nvrtc 13.0 cuda codegen 1";
    c.artifact.binary = str("FAKECUBIN\nkernel k ", kernel, " ns=", ns, "\n");
    task.candidates.push_back(std::move(c));
  }
  return task;
}

// What checks large answers and calibrates, as the driver knows them.
std::string checker() {
  std::string text = "FAKECUBIN\n";
  for (const auto& [kernel, behaviour] : {std::pair(sums_kernel(DType::kFloat32), "check_sums"),
                                          {samples_kernel(DType::kFloat32), "check_samples"},
                                          {kEqualKernel, "check_equal"},
                                          {kHashKernel, "check_hash"},
                                          {kFfmaKernel, "probe_ffma"},
                                          {kMmaBrainKernel, "probe_mma"},
                                          {kMmaByteKernel, "probe_mma"},
                                          {kMmaTf32Kernel, "probe_mma"},
                                          {kLinksKernel, "probe_links"}})
    text += str("kernel ", kernel, " ", behaviour, "\n");
  for (const char* name : {kClocksFfma, kClocksLds128, kClocksShared, kClocksL1, kClocksL2})
    text += str("kernel ", name, " probe_clocks n=512\n");
  return text;
}

Status write_rehearsal(const std::string& file, const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<JobEntry> entries, read_job_file(file));
  const std::filesystem::path folder = path + ".references";
  std::filesystem::create_directories(folder);
  MadeUpTasks tasks(folder);
  Pack pack{.about = str("a rehearsal of ", std::filesystem::path(file).filename().string())};
  pack.plan.rounds = {{.repeats = 3}, {.repeats = 5}};
  pack.plan.min_repeat_ms = 0.05;
  std::vector<std::string> known;
  for (const JobEntry& entry : entries) {
    PackTask task = task_of(tasks, entry.workload);
    if (std::ranges::find(known, task.workload_key) != known.end()) continue;  // small extents are alike
    known.push_back(task.workload_key);
    task.checker = checker();
    pack.tasks.push_back(std::move(task));
  }
  std::filesystem::remove_all(folder);
  return write_pack(pack, path);
}

}  // namespace
}  // namespace tuner

int main(int argc, char** argv) {
  if (argc != 4 || std::string_view(argv[2]) != "-o") {
    std::fprintf(stderr, "usage: rehearsal_pack JOBFILE -o PACK\n");
    return 2;
  }
  const tuner::Status written = tuner::write_rehearsal(argv[1], argv[3]);
  if (!written) std::fprintf(stderr, "rehearsal_pack: %s\n", written.message().c_str());
  return written ? 0 : written.code() == tuner::StatusCode::kInvalidArgument ? 2 : 1;
}
