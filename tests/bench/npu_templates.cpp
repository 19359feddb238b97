// What the templates of the NPU reach on the default machine: of each task the default config, and the best
// of a number of random ones. Shares are of the array's peak, counted in products that the task asks for. No
// search, no runner: programs are simulated here, so the same seed prints the same.
//
//   npu_templates [CONFIGS]     512^3 and the convolutions of ResNet-50; 20 random configs each
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
#include "compiler_core/npu/simulator.h"
#include "templates/npu/npu_templates.h"

namespace {

using namespace tuner;

// Cycles of the config; 0: it is no program.
int64_t cycles_of(const TemplateInstance& instance, const Config& config, const npu::Machine& machine) {
  const Result<Program> program = instance.instantiate(config);
  if (!program.is_ok()) return 0;
  const Result<NpuProgram> lowered = lower_to_npu(*program, machine);
  if (!lowered.is_ok()) return 0;
  std::vector<uint8_t> dram(lowered->kernel.dram_bytes);
  const npu::Simulated run = npu::simulate(machine, lowered->kernel.code, dram);
  return run.fault ? 0 : run.cycles;
}

struct Shares {
  double first = 0, best = 0;
};

Shares report(const AnyTemplate& t, const Workload& w, const char* name, int samples) {
  const Target target = *parse_target("npu");
  const npu::Machine machine = machine_of(target);
  const auto instance = t.apply(w, target);
  if (!instance.is_ok()) return std::fprintf(stderr, "%s\n", instance.message().c_str()), Shares();
  const ConfigSpace& space = (*instance)->space();
  const double least =
      static_cast<double>(w.flops()) / 2 / static_cast<double>(machine.array_rows * machine.array_columns);
  const auto share = [&](const Config& config) {
    const int64_t cycles = cycles_of(**instance, config, machine);
    return cycles == 0 ? 0 : least / static_cast<double>(cycles);
  };
  std::mt19937_64 rng(1);
  Config best = space.at(space.default_index());
  Shares found{.first = share(best)};
  found.best = found.first;
  for (int i = 0; i < samples; ++i) {
    const Config config = space.at(space.sample(rng));
    const double reached = share(config);
    if (reached <= found.best) continue;
    found.best = reached;
    best = config;
  }
  std::printf("%-28s default %.3f  best %.3f  %s\n", name, found.first, found.best, best.to_text().c_str());
  return found;
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
  const int64_t cycles = cycles_of(**instance, config, m);
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
  return all ? 0 : 1;
}
