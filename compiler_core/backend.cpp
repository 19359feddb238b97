// What a back end does when it says nothing of its own.
#include "compiler_core/backend.h"

#include <memory>

namespace tuner {

Result<std::optional<Target>> Backend::resolve_here(std::string_view /*text*/) const {
  return std::optional<Target>();
}

Result<std::string> Backend::toolchain_for(const Program& /*program*/) const { return toolchain(); }

Status Backend::check_words(const Target& /*target*/) const { return Status::ok(); }

bool Backend::measures(const Target& code, const Target& there, std::span<const std::string> /*features*/,
                       int /*max_threads*/) const {
  return code.name() == there.name();
}

Result<Artifact> Backend::compile_emulated(const Program& /*program*/, const Target& target) const {
  return invalid_argument("kernels for \"", target.name(), "\" cannot be emulated");
}

Result<ListedCode> Backend::compile_listed(const Program& /*program*/, const Target& target) const {
  return invalid_argument("kernels for \"", target.name(),
                          "\" have no text of an assembler that anybody reads");
}

Result<std::string> Backend::text_after(std::string_view /*last*/, const Program& /*program*/,
                                        const Target& target) const {
  return invalid_argument("the passes of \"", target.name(), "\" are not shown");
}

Result<std::string> Backend::compile_helper(const std::string& /*source*/, const Target& target) const {
  return invalid_argument("no helper is compiled for \"", target.name(), "\"");
}

Result<double> Backend::estimate_ns(const Program& /*program*/, const Target& target) const {
  return invalid_argument("no time is estimated for \"", target.name(), "\"");
}

std::vector<float> Backend::features(const Program& /*program*/, const Target& /*target*/) const {
  return {};
}

double Backend::least_ns(const Program& /*program*/, const Target& /*target*/,
                         const Artifact& /*artifact*/) const {
  return 0;
}

std::optional<MachineRoofs> Backend::roofs(const Target& /*target*/, DType /*dtype*/,
                                           double /*recorded_gflops*/) const {
  return std::nullopt;
}

std::vector<ArgInfo> argument_infos(const std::vector<Buffer>& args) {
  std::vector<ArgInfo> infos;
  infos.reserve(args.size());
  for (const Buffer& b : args)
    infos.push_back({.name = b->name,
                     .role = b->role,
                     .dtype = b->dtype,
                     .shape = b->shape,
                     .layout = b->layout,
                     .bytes = b->bytes()});
  return infos;
}

Program under_name(Program program, const std::string& name) {
  if (program.packing != nullptr) {
    Program packing = *program.packing;
    packing.name = name + "_pack";
    program.packing = std::make_shared<const Program>(std::move(packing));
  }
  program.name = name;
  return program;
}

}  // namespace tuner
