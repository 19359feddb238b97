// What the templates of the NPU reach on the default machine: of each task the default config, and the best
// of a number of random ones. Shares are of the array's peak, counted in products that the task asks for, and
// of the program's roofline (queue_work.h), with what bounds it. No search, no runner: programs are simulated
// here, so the same seed prints the same.
//
//   npu_templates [CONFIGS]     512^3, the convolutions of ResNet-50, and tasks of the vector unit; 20 random
//                               configs each
//   npu_templates ablation      512^3: one choice after the other in another way than by default
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/codegen_npu/lower_npu.h"
#include "compiler_core/codegen_npu/npu_family.h"
#include "compiler_core/codegen_npu/queue_work.h"
#include "compiler_core/npu/simulator.h"
#include "templates/npu/npu_templates.h"

namespace {

using namespace tuner;

struct Run {
  int64_t cycles = 0;  // 0: it is no program
  int64_t least = 0;   // by its roofline
  std::string_view bound;
  double of_roofline() const {
    return cycles == 0 ? 0 : static_cast<double>(least) / static_cast<double>(cycles);
  }
};

Run run_of(const TemplateInstance& instance, const Config& config, const npu::Machine& machine) {
  const Result<Program> program = instance.instantiate(config);
  if (!program.is_ok()) return {};
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine);
  if (!lowered.is_ok()) return {};
  std::vector<uint8_t> dram(lowered->kernel.dram_bytes);
  const npu::Simulated run = npu::simulate(machine, lowered->kernel.code, dram);
  if (run.fault) return {};
  const QueueWork work = queue_work(machine, lowered->kernel.code);
  return {run.cycles, work.least_cycles(), work.bound()};
}

// The default config and the fastest.
struct Found {
  Run first, best;
  Config config;
};

Found find(const AnyTemplate& t, const Workload& w, int samples) {
  const Target target = *parse_target("npu");
  const npu::Machine machine = machine_of(target);
  const auto instance = t.apply(w, target);
  if (!instance.is_ok()) return std::fprintf(stderr, "%s\n", instance.message().c_str()), Found();
  const ConfigSpace& space = (*instance)->space();
  std::mt19937_64 rng(1);
  Found found{.config = space.at(space.default_index())};
  found.first = found.best = run_of(**instance, found.config, machine);
  for (int i = 0; i < samples; ++i) {
    const Config config = space.at(space.sample(rng));
    const Run run = run_of(**instance, config, machine);
    if (run.cycles == 0 || run.cycles >= found.best.cycles) continue;
    found.best = run;
    found.config = config;
  }
  return found;
}

struct Shares {
  double first = 0, best = 0;
};

// Of the array's peak.
Shares report(const AnyTemplate& t, const Workload& w, const char* name, int samples) {
  const npu::Machine machine;
  const double least =
      static_cast<double>(w.flops()) / 2 / static_cast<double>(machine.array_rows * machine.array_columns);
  const Found found = find(t, w, samples);
  const auto share = [&](const Run& run) {
    return run.cycles == 0 ? 0 : least / static_cast<double>(run.cycles);
  };
  const Shares shares{share(found.first), share(found.best)};
  std::printf("%-28s default %.3f  best %.3f  %.3f of its roofline (%s)  %s\n", name, shares.first,
              shares.best, found.best.of_roofline(), std::string(found.best.bound).c_str(),
              found.config.to_text().c_str());
  return shares;
}

// Of their rooflines. False: a default config is no program.
bool report_vector_unit(int samples) {
  const auto row = [&](const AnyTemplate& t, const Workload& w, const char* name) {
    const Found found = find(t, w, samples);
    std::printf("%-36s %8lld cycles  default %.3f  best %.3f of the roofline (%s)  %s\n", name,
                static_cast<long long>(found.first.cycles), found.first.of_roofline(),
                found.best.of_roofline(), std::string(found.best.bound).c_str(),
                found.config.to_text().c_str());
    return found.first.cycles > 0;
  };
  const auto program = [](const char* text) { return *program_from_text(text); };
  Conv2dWorkload depthwise{.in_channels = 128,
                           .in_height = 28,
                           .in_width = 28,
                           .out_channels = 128,
                           .kernel_height = 3,
                           .kernel_width = 3,
                           .bias = true,
                           .dtype = DType::kInt8};
  depthwise.padding = {1, 1, 1, 1};
  depthwise.groups = 128;
  depthwise.narrow_out = DType::kUInt8;
  depthwise.layout = depthwise.out_layout = "NHWC";
  depthwise.constant = {"weight"};
  Pool2dWorkload pool{.channels = 64,
                      .in_height = 112,
                      .in_width = 112,
                      .kernel_height = 3,
                      .kernel_width = 3,
                      .stride = {2, 2}};
  pool.padding = {1, 1, 1, 1};
  pool.dtype = DType::kUInt8;
  pool.layout = "NHWC";
  Pool2dWorkload with_sign = pool;
  with_sign.dtype = DType::kInt8;
  bool all = row(depthwise_conv2d_npu(), Workload(depthwise), "depthwise 3x3, 28^2 x 128");
  all = row(pool2d_npu(), Workload(pool), "pooling 3x3 / 2, 112^2 x 64, uint8") && all;
  all = row(pool2d_npu(), Workload(with_sign), "pooling 3x3 / 2, 112^2 x 64, int8") && all;
  all = row(quantized_add_npu(),
            program("in=uint8[802816],uint8[802816] com.microsoft.QLinearAdd(0,float32[](0.5),uint8[](128),"
                    "1,float32[](0.25),uint8[](128),float32[](0.75),uint8[](128))"),
            "sum, 56^2 x 256") &&
        all;
  const char* const softmax =
      "] com.microsoft.QLinearSoftmax(0,float32[](0.125),uint8[](128),float32[](0.00390625),uint8[](0))";
  all = row(quantized_softmax_npu(), program(str("in=uint8[1536,128", softmax).c_str()),
            "softmax, 1536 x 128") &&
        all;
  all = row(quantized_softmax_npu(), program(str("in=uint8[1,1000", softmax).c_str()), "softmax, 1 x 1000") &&
        all;
  all = row(quantized_norm_npu(),
            program("in=uint8[128,768],float32[768],float32[768] "
                    "tuner.QLinearLayerNormalization(0,1,2,uint8[](128)){epsilon=0.25f}"),
            "layer norm, 128 x 768") &&
        all;
  return all;
}

// side, channels, out_channels, kernel, stride; each distinct convolution once (stride in the 3 x 3).
constexpr int kLayers[][5] = {
    {224, 3, 64, 7, 2},     {56, 64, 64, 1, 1},    {56, 64, 64, 3, 1},    {56, 64, 256, 1, 1},
    {56, 256, 64, 1, 1},    {56, 256, 128, 1, 1},  {56, 128, 128, 3, 2},  {28, 128, 512, 1, 1},
    {56, 256, 512, 1, 2},   {28, 512, 128, 1, 1},  {28, 128, 128, 3, 1},  {28, 512, 256, 1, 1},
    {28, 256, 256, 3, 2},   {14, 256, 1024, 1, 1}, {28, 512, 1024, 1, 2}, {14, 1024, 256, 1, 1},
    {14, 256, 256, 3, 1},   {14, 1024, 512, 1, 1}, {14, 512, 512, 3, 2},  {7, 512, 2048, 1, 1},
    {14, 1024, 2048, 1, 2}, {7, 2048, 512, 1, 1},  {7, 512, 512, 3, 1}};

Workload layer(const int (&row)[5]) {
  Conv2dWorkload w{.in_channels = row[1],
                   .in_height = row[0],
                   .in_width = row[0],
                   .out_channels = row[2],
                   .kernel_height = row[3],
                   .kernel_width = row[3],
                   .stride = {row[4], row[4]},
                   .bias = true,
                   .dtype = DType::kInt8};
  const int64_t border = row[3] / 2;
  w.padding = {border, border, border, border};
  w.narrow_out = DType::kUInt8;
  w.layout = w.out_layout = "NHWC";
  w.constant = {"weight"};
  return Workload(w);
}

// The default config of 512^3 with some of its knobs in another way, on this machine.
void ablate(const char* what, const char* machine, bool transposed, const std::string& knobs) {
  MatmulWorkload w{
      .m = 512, .n = 512, .k = 512, .transpose_a = transposed, .bias = true, .dtype = DType::kInt8};
  w.narrow_out = DType::kUInt8;
  const Target target = *parse_target(machine);
  const npu::Machine m = machine_of(target);
  const auto instance = matmul_npu().apply(Workload(w), target);
  CHECK(instance.is_ok()) << instance.message();
  const Config config = *config_from_text(knobs);
  const int64_t cycles = run_of(**instance, config, m).cycles;
  std::printf(
      "%-34s %7lld cycles  %.3f\n", what, static_cast<long long>(cycles),
      cycles == 0 ? 0 : 512.0 * 512 * 512 / static_cast<double>(m.array_rows * m.array_columns * cycles));
}

int ablation() {
  const auto knobs = [](int stages, int order, int resident, int panel_stages, int tile_m) {
    return str("order=", order, " panel_stages=", panel_stages, " resident=", resident, " stages=", stages,
               " tile_k=128 tile_m=", tile_m, " tile_n=64");
  };
  const std::string usual = knobs(2, 0, 0, 1, 128);
  ablate("default", "npu", false, usual);
  ablate("stages: 1", "npu", false, knobs(1, 0, 0, 1, 128));
  ablate("stages: 3", "npu", false, knobs(3, 0, 0, 1, 128));
  ablate("rows of a stay", "npu", false, knobs(2, 0, 1, 1, 128));
  ablate("rows of a stay, two panels", "npu", false, knobs(2, 0, 1, 2, 64));
  ablate("columns of b stay", "npu", false, knobs(2, 1, 1, 1, 128));
  ablate("columns of b stay, two panels", "npu", false, knobs(2, 1, 1, 2, 128));
  ablate("tiles of 35 rows", "npu", false, knobs(2, 0, 0, 1, 35));
  ablate("output stationary (a as [K, M])", "npu", true, usual);
  ablate("banks: 1", "npu -banks=1", false, usual);
  ablate("banks: 2", "npu -banks=2", false, usual);
  ablate("banks: 8", "npu -banks=8", false, usual);
  ablate("DRAM: 8 bytes per cycle", "npu -dram_bytes=8", false, usual);
  ablate("DRAM: 4 bytes per cycle", "npu -dram_bytes=4", false, usual);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "ablation") return ablation();
  const int samples = argc > 1 ? std::atoi(argv[1]) : 20;
  MatmulWorkload square{.m = 512, .n = 512, .k = 512, .bias = true, .dtype = DType::kInt8};
  square.narrow_out = DType::kUInt8;
  const Shares product = report(matmul_npu(), Workload(square), "matmul 512^3", samples);
  double first = 0, best = 0, layers = 0;
  bool all = product.best > 0;
  for (const auto& row : kLayers) {
    const std::string name =
        str(row[0], "^2 x ", row[1], " -> ", row[2], "  ", row[3], "x", row[3], " / ", row[4]);
    const Shares s = report(conv2d_npu(), layer(row), name.c_str(), samples);
    all = all && s.first > 0;
    first += std::log(std::max(s.first, 1e-9));
    best += std::log(std::max(s.best, 1e-9));
    ++layers;
  }
  std::printf("ResNet-50, geometric mean    default %.3f  best %.3f\n", std::exp(first / layers),
              std::exp(best / layers));
  all = report_vector_unit(samples) && all;
  return all ? 0 : 1;
}
