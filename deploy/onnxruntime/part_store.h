// PartStore: the libraries of parts, in a folder that sessions and processes share.
//
//   CACHE/DIGEST/   what `tuner compile` writes of a part
//
// DIGEST tells the part with its weights, and what it is compiled for. A folder appears by renaming, complete
// or not at all, so processes need no lock. To have a part compiled again, with newer configs, remove its
// folder. Loading a library trusts it: the folder must be writable by its owner alone, us or root.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "deploy/onnxruntime/part_library.h"
#include "deploy/onnxruntime/part_model.h"
#include "deploy/onnxruntime/provider_options.h"

namespace tuner::ort {

class PartStore {
 public:
  // `say`: told, in a line, when a part is about to be compiled.
  PartStore(ProviderOptions options, std::function<void(const std::string&)> say)
      : options_(std::move(options)), say_(std::move(say)) {}

  // The library of the part; compiles it by running `tuner compile` if the cache lacks it. NotFound: it lacks
  // it, and options say not to compile. InvalidArgument: the folder cannot be trusted, a library is damaged,
  // or `tuner` refused the part. Failed: there is no program `tuner`, or it crashed.
  Result<std::shared_ptr<PartLibrary>> find_or_compile(const NodeGraph& graph, const Part& part) const;

 private:
  std::string key_of(const PartModel& model) const;
  Status compile(const PartModel& model, const std::string& key) const;
  Status run_compiler(const std::string& folder, const std::string& key) const;
  Result<std::string> program() const;

  ProviderOptions options_;
  std::function<void(const std::string&)> say_;
};

}  // namespace tuner::ort
