// Spellings of a target that mean the host that resolves them (resolve_target, backend.h): "cpu",
// "cpu -threads=N", "cpu -threads=all", "cuda -arch=native", "cuda -arch=native -device=native".
// parse_target() refuses them, because their name depends on the machine.
#pragma once

#include <string_view>

namespace tuner {

inline constexpr std::string_view kGpuOfHost = "cuda -arch=native";
// True for both spellings of a GPU, with whatever blanks.
bool means_gpu_of_host(std::string_view text);
// True for the second one, whose name has the class of the GPU, too.
bool means_class_of_host(std::string_view text);
// True for every such spelling. Options behind "cpu" may still be wrong: resolve_target() says so.
bool means_host(std::string_view text);

}  // namespace tuner
