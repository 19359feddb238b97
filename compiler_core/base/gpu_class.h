// The class of a GPU: its model, "h200" of "NVIDIA H200". Targets name it with -device=.
//
// It is the name without its maker, its memory and the module that most are sold as (SXM):
// "NVIDIA A100-SXM4-40GB" is a100. Another form of a card has other clocks and fewer multiprocessors, and a
// part of one (MIG) has a share of them, so those stay: h100-pcie, a100-mig-1g.5gb. Models with two sizes of
// memory are one class, although the larger may be faster. A rule and no table, so that next year's GPU has a
// class.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

// "rtx4090-laptop" of "NVIDIA GeForce RTX 4090 Laptop GPU". A class is its own class. Empty: it tells none.
std::string gpu_class(std::string_view name);

struct GpuHardware {
  std::string arch;          // "sm_90"
  std::string device_class;  // "h200"; empty: not told
};
// What a GPU's hardware fingerprint says (fingerprint(), runtime/cuda_driver.h): "NVIDIA H200 sm_90 | ...".
// An architecture alone tells no class; a text of something else tells nothing.
GpuHardware gpu_of_fingerprint(std::string_view hardware);

}  // namespace tuner
