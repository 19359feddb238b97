// Classes of GPUs, from the names that drivers give them.
#include "compiler_core/base/gpu_class.h"

#include <gtest/gtest.h>

namespace tuner {
namespace {

// Names as nvidia-smi prints them.
TEST(GpuClass, IsTheModelWithoutMakerMemoryAndUsualModule) {
  const std::pair<const char*, const char*> names[] = {
      {"NVIDIA H200", "h200"},
      {"NVIDIA H200 NVL", "h200-nvl"},
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA H100 NVL", "h100-nvl"},
      {"NVIDIA GH200 480GB", "gh200"},
      {"NVIDIA GH200 144G HBM3e", "gh200"},
      {"NVIDIA A100-SXM4-40GB", "a100"},
      {"NVIDIA A100-SXM-64GB", "a100"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie"},
      {"NVIDIA A100-PCIE-40GB", "a100-pcie"},
      {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-mig-1g.5gb"},
      {"Tesla V100-SXM2-16GB", "v100"},
      {"Tesla T4", "t4"},
      {"NVIDIA A10G", "a10g"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA B200", "b200"},
      {"NVIDIA GeForce RTX 4090", "rtx4090"},
      {"NVIDIA GeForce RTX 4090 Laptop GPU", "rtx4090-laptop"},
      {"NVIDIA GeForce RTX 3080 Ti", "rtx3080-ti"},
      {"NVIDIA GeForce GTX 1660 SUPER", "gtx1660-super"},
      {"NVIDIA RTX A6000", "rtx-a6000"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx6000-ada"},
      {"Quadro RTX 8000", "rtx8000"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-blackwell-server-edition"},
      {"Orin", "orin"},
  };
  for (const auto& [name, expected] : names) {
    EXPECT_EQ(gpu_class(name), expected) << name;
    EXPECT_EQ(gpu_class(expected), expected) << "a class is its own class";
  }
  EXPECT_EQ(gpu_class(""), "");
  EXPECT_EQ(gpu_class("NVIDIA Tesla GPU 80GB"), "");
  EXPECT_EQ(gpu_class("  //NVIDIA\n\x1b[31mH100\t "), "31mh100")
      << "no byte that a target's name cannot have";
}

TEST(GpuClass, AFingerprintTellsArchitectureAndClass) {
  const auto told = [](const char* text) {
    const GpuHardware gpu = gpu_of_fingerprint(text);
    return gpu.arch + "/" + gpu.device_class;
  };
  EXPECT_EQ(told("NVIDIA H200 sm_90 | 132 multiprocessors | 139.8 GiB L2 50.0 MiB | driver CUDA 13.0"),
            "sm_90/h200");
  EXPECT_EQ(told("NVIDIA H100 80GB HBM3 sm_90 | 132 multiprocessors"), "sm_90/h100");
  EXPECT_EQ(told("sm_120"), "sm_120/") << "an architecture alone";
  for (const char* other : {"", "sm_", "sm_x | 1", "AMD EPYC 9R14 | 2 CPUs", "NVIDIA H200", "NPU, simulated"})
    EXPECT_EQ(told(other), "/") << other;
}

}  // namespace
}  // namespace tuner
