#include "tuner/compile/compile_targets.h"

#include <utility>

#include "compiler_core/backend.h"
#include "tuner/bundle/cpu_variants.h"

namespace tuner {
namespace {

// A program knows the architecture of the GPU that it meets, and takes the first kernels that are for it.
Status check_is_another(const Target& target, const CompileRequest& request) {
  const auto for_any = [](const Target& t) {
    const std::string any = t.family->any_device(t);
    return any.empty() ? t.name() : any;
  };
  const auto refuse = [&](const Target& before) {
    return invalid_argument("several --target: \"", target.name(), "\" and \"", before.name(),
                            "\" are one architecture, by which a library chooses its kernels; leave one out");
  };
  if (for_any(request.target) == for_any(target)) return refuse(request.target);
  for (const Target& before : request.more_targets)
    if (for_any(before) == for_any(target)) return refuse(before);
  return Status::ok();
}

}  // namespace

Status choose_targets(std::vector<std::string> words, int threads, CompileRequest& request) {
  if (words.empty()) words = {"cpu"};
  for (size_t t = 0; t < words.size(); ++t) {
    std::string word = words[t];
    if (const auto named = parse_target(word); named.is_ok() && backend_of(*named).host_library()) {
      if (words.size() > 1)
        return invalid_argument("several --target: \"", named->name(),
                                "\" runs steps of a library for this CPU; leave the others out");
      if (request.blocks)
        return invalid_argument("--blocks: images lie in NHWC where \"", named->name(),
                                "\" takes steps; leave one of the two out");
      request.accelerator = *named;
      word = "cpu";
    }
    ASSIGN_OR_RETURN(Target target, resolve_target(threads == 1 ? word : str(word, " -threads=", threads)));
    if (t == 0) {
      request.target = std::move(target);
      continue;
    }
    RETURN_IF_ERROR(check_is_another(target, request));
    request.more_targets.push_back(std::move(target));
  }
  return Status::ok();
}

Status choose_cpus(const std::string& words, int threads, CompileRequest& request) {
  if (!request.uses.empty())
    return invalid_argument("--use ", request.uses.front(),
                            ": a function of somebody else's is for one CPU; leave --use or --for out");
  const Result<std::vector<CpuVariant>> cpus = parse_cpus(words);
  if (!cpus) return cpus.status().with_context("--for: ");
  request.several_cpus = cpus->size() > 1;
  for (size_t c = 0; c < cpus->size(); ++c) {
    ASSIGN_OR_RETURN(Target target, parse_target(str("llvm -mcpu=", (*cpus)[c].mcpu, " -threads=", threads)));
    if (c == 0)
      request.target = std::move(target);
    else
      request.more_targets.push_back(std::move(target));
  }
  return Status::ok();
}

}  // namespace tuner
