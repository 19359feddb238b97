// The CUDA examples of examples/own_kernels, their configs, and their answers by plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/input_file.h"
#include "compiler_core/host_cuda/host_cuda.h"

namespace tuner {

inline std::string bytes_of(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}
inline std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}
inline std::vector<float> scattered(size_t n, uint32_t seed) {
  std::vector<float> numbers(n);
  for (float& x : numbers) x = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0F - 1;
  return numbers;
}

struct CudaConfig {
  std::map<std::string, int> knobs;
  int operator[](const std::string& name) const { return knobs.at(name); }
  std::string text() const {
    std::string all;
    for (const auto& [name, value] : knobs) all += str(name, "=", value, " ");
    return all;
  }
};

struct CudaExample {
  std::string name;       // of the file
  HostCudaKernel kernel;  // without what a config decides
  std::vector<std::string> given;
  std::vector<float> answer;
  std::vector<CudaConfig> configs;
  void (*launch)(HostCudaKernel&, const CudaConfig&) = nullptr;
  std::vector<std::pair<std::string, std::string>> damage;  // text of the source -> what it becomes

  // Empty if the config is right and nothing is found; else what is wrong.
  std::string fault_of(const CudaConfig& config) const {
    HostCudaKernel k = kernel;
    for (const auto& [knob, value] : config.knobs) k.words.push_back(str("-D", knob, "=", value));
    launch(k, config);
    const Result<HostCudaRun> run = run_host_cuda(k, given);
    if (!run) return run.message();
    if (!run->fault().empty()) return run->fault();
    const std::vector<float> out = floats_of(run->outputs.at(0));
    for (size_t i = 0; i < answer.size(); ++i)
      if (!(std::abs(out.at(i) - answer[i]) <= 1e-4F + 1e-4F * std::abs(answer[i])))
        return str("out[", i, "] is ", out[i], ", expected ", answer[i]);
    return "";
  }
  CudaExample damaged(const std::string& from, const std::string& to) const {
    CudaExample made = *this;
    std::string& text = made.kernel.files[0].text;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    return made;
  }
};

// Every combination of the values.
inline std::vector<CudaConfig> combinations(const std::map<std::string, std::vector<int>>& knobs) {
  std::vector<CudaConfig> all(1);
  for (const auto& [name, values] : knobs) {
    std::vector<CudaConfig> longer;
    for (const CudaConfig& c : all)
      for (const int v : values) {
        longer.push_back(c);
        longer.back().knobs[name] = v;
      }
    all = std::move(longer);
  }
  return all;
}

inline CudaExample cuda_example(const std::string& file, const std::string& function) {
  CudaExample e{.name = file};
  const Result<std::string> text =
      read_file(str(TUNER_SOURCE_DIR "/examples/own_kernels/", file), "a source", 1 << 20);
  EXPECT_TRUE(text.is_ok()) << text.message();
  e.kernel.files = {{file, text.is_ok() ? *text : ""}};
  e.kernel.source = file;
  e.kernel.function = function;
  return e;
}

inline CudaExample reduce_example() {
  constexpr int kRows = 3, kColumns = 1000;
  CudaExample e = cuda_example("reduce.cu", "row_sums");
  const std::vector<float> in = scattered(kRows * kColumns, 1);
  for (int r = 0; r < kRows; ++r) {
    double sum = 0;
    for (int c = 0; c < kColumns; ++c) sum += in[static_cast<size_t>(r * kColumns + c)];
    e.answer.push_back(static_cast<float>(sum));
  }
  e.given = {bytes_of(in)};
  e.kernel.grid = {kRows, 1, 1};
  e.kernel.arguments = {{"in", "const float*", kRows * kColumns, 4, BufferRole::kInput, ""},
                        {"out", "float*", kRows, 4, BufferRole::kOutput, ""},
                        {"columns", "int", 0, 0, BufferRole::kInput, str(kColumns)}};
  e.configs = combinations({{"PER_THREAD", {1, 2, 3, 4, 5, 6, 7, 8}},
                            {"SHUFFLE", {0, 1}},
                            {"THREADS", {64, 128, 256, 512, 1024}}});
  e.launch = [](HostCudaKernel& k, const CudaConfig& c) { k.block = {c["THREADS"], 1, 1}; };
  e.damage = {{"sums[threadIdx.x] = sum;\n  __syncthreads();", "sums[threadIdx.x] = sum;"},
              {"sums[threadIdx.x + half];\n    __syncthreads();", "sums[threadIdx.x + half];"},
              {"first + i * THREADS < columns", "first + i * THREADS <= columns"},
              {"sums[threadIdx.x + half]", "sums[threadIdx.x + half + 1]"}};
  return e;
}

inline CudaExample transpose_example() {
  constexpr int kHeight = 70, kWidth = 45;
  CudaExample e = cuda_example("transpose.cu", "transpose");
  const std::vector<float> in = scattered(kHeight * kWidth, 2);
  for (int x = 0; x < kWidth; ++x)
    for (int y = 0; y < kHeight; ++y) e.answer.push_back(in[static_cast<size_t>(y * kWidth + x)]);
  e.given = {bytes_of(in)};
  e.kernel.arguments = {{"in", "const float*", kHeight * kWidth, 4, BufferRole::kInput, ""},
                        {"out", "float*", kHeight * kWidth, 4, BufferRole::kOutput, ""},
                        {"height", "int", 0, 0, BufferRole::kInput, str(kHeight)},
                        {"width", "int", 0, 0, BufferRole::kInput, str(kWidth)}};
  for (const CudaConfig& c : combinations(
           {{"TILE", {4, 8, 12, 16, 24, 32, 40, 48}}, {"ROWS", {1, 2, 4, 8, 16}}, {"PAD", {0, 1, 2, 3, 4}}}))
    if (c["TILE"] * c["ROWS"] <= 1024 && c["ROWS"] <= c["TILE"]) e.configs.push_back(c);
  e.launch = [](HostCudaKernel& k, const CudaConfig& c) {
    const int64_t tile = c["TILE"];
    k.grid = {(kWidth + tile - 1) / tile, (kHeight + tile - 1) / tile, 1};
    k.block = {tile, c["ROWS"], 1};
  };
  e.damage = {{"  __syncthreads();\n", ""},
              {"tile[threadIdx.x][i]", "tile[threadIdx.x][i + 1]"},
              {"y < height) tile", "y <= height) tile"}};
  return e;
}

inline CudaExample conv2d_example() {
  constexpr int kHeight = 37, kWidth = 50, kWindow = 5;
  CudaExample e = cuda_example("conv2d.cu", "conv2d");
  const int in_width = kWidth + kWindow - 1, in_elements = (kHeight + kWindow - 1) * in_width;
  const std::vector<float> in = scattered(static_cast<size_t>(in_elements), 3), weight = scattered(25, 4);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      double sum = 0;
      for (int i = 0; i < kWindow; ++i)
        for (int j = 0; j < kWindow; ++j)
          sum += static_cast<double>(in[static_cast<size_t>((y + i) * in_width + x + j)]) *
                 weight[static_cast<size_t>(i * kWindow + j)];
      e.answer.push_back(static_cast<float>(sum));
    }
  e.given = {bytes_of(in), bytes_of(weight)};
  e.kernel.arguments = {{"in", "const float*", in_elements, 4, BufferRole::kInput, ""},
                        {"weight", "const float*", 25, 4, BufferRole::kInput, ""},
                        {"out", "float*", kHeight * kWidth, 4, BufferRole::kOutput, ""},
                        {"height", "int", 0, 0, BufferRole::kInput, str(kHeight)},
                        {"width", "int", 0, 0, BufferRole::kInput, str(kWidth)}};
  e.configs = combinations({{"BLOCK_X", {16, 32, 48, 64}},
                            {"BLOCK_Y", {1, 2, 4, 8}},
                            {"TILE_Y", {1, 2, 3, 4}},
                            {"UNROLL", {1, 5}}});
  e.launch = [](HostCudaKernel& k, const CudaConfig& c) {
    const int64_t rows = int64_t{c["BLOCK_Y"]} * c["TILE_Y"], columns = c["BLOCK_X"];
    k.grid = {(kWidth + columns - 1) / columns, (kHeight + rows - 1) / rows, 1};
    k.block = {columns, c["BLOCK_Y"], 1};
    k.shared_bytes = 4 * (rows + kWindow - 1) * (columns + kWindow - 1);
  };
  e.damage = {{"  __syncthreads();\n", ""},
              {"y < rows; y", "y <= rows; y"},
              {"rows = BLOCK_Y * TILE_Y + WINDOW - 1", "rows = BLOCK_Y * TILE_Y + WINDOW - 2"}};
  return e;
}

inline std::vector<CudaExample> cuda_examples() {
  return {reduce_example(), transpose_example(), conv2d_example()};
}

}  // namespace tuner
