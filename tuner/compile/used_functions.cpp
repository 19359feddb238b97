#include "tuner/compile/used_functions.h"

#include <elf.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/base/elements.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/codegen/library.h"
#include "tuner/bundle/c_signature.h"
#include "tuner/compile/reference_tensor.h"
#include "tuner/compile/shared_object.h"
#include "tuner/model/constant_packer.h"

namespace tuner {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of a library
// The slowest function that is waited for: one that adds so few products a second is of no use.
constexpr double kLeastFlopsPerS = 1e8;
constexpr double kLeastWaitS = 10;

template <class... Args>
Status refused(const std::string& word, const Args&... args) {
  return invalid_argument("--use ", word, ": ", args...);
}

// A step has its own name and those of its nodes.
std::vector<size_t> steps_called(const ModelSteps& model, std::string_view name) {
  std::vector<size_t> found;
  for (size_t s = 0; s < model.steps.size(); ++s) {
    const ModelStep& step = model.steps[s];
    if (step.name == name ||
        std::ranges::any_of(step.nodes, [&](size_t n) { return model.graph.nodes[n].name == name; }))
      found.push_back(s);
  }
  return found;
}

// NODE=FILE:SYMBOL. Names of nodes and files may have `=` in them: the first that ends the name of a step
// counts.
struct Parts {
  std::string node, file, symbol;
};
Result<Parts> parts_of(const std::string& word, const ModelSteps& model) {
  const size_t colon = word.rfind(':'), first = word.find('=');
  if (first == std::string::npos || first == 0 || colon == std::string::npos || colon < first + 2 ||
      colon + 1 == word.size())
    return invalid_argument("--use: expected NODE=LIBRARY:FUNCTION, found \"", word, "\"");
  size_t equals = first;
  for (size_t at = first; at < colon; at = word.find('=', at + 1))
    if (!steps_called(model, word.substr(0, at)).empty()) {
      equals = at;
      break;
    }
  return Parts{word.substr(0, equals), word.substr(equals + 1, colon - equals - 1), word.substr(colon + 1)};
}

Result<size_t> find_step(const std::string& word, const std::string& node, const ModelSteps& model) {
  const std::vector<size_t> found = steps_called(model, node);
  if (found.size() == 1) return found[0];
  if (found.size() > 1) return refused(word, found.size(), " steps are called \"", node, "\"");
  std::vector<std::string> names;
  for (const ModelStep& step : model.steps) {
    names.push_back(step.name);
    for (const size_t n : step.nodes) names.push_back(model.graph.nodes[n].name);
  }
  return refused(word, "no step of the model is called \"", node, "\"", did_you_mean(node, names),
                 "; tuner show DIR of the compiled model lists them");
}

Status check_callable(const std::string& word, const Parts& parts, const std::string& bytes,
                      const Target& target) {
  const auto object = read_shared_object(bytes, parts.file);
  if (!object) return refused(word, object.message());
  const uint16_t expected = target.is_x86() ? EM_X86_64 : EM_AARCH64;
  if (object->machine != expected)
    return refused(word, parts.file, " is a library for ", machine_name(object->machine), ", expected ",
                   machine_name(expected), ", of \"", target.name(), "\"");
  if (std::ranges::find(object->functions, parts.symbol) == object->functions.end())
    return refused(word, parts.file, " exports no function \"", parts.symbol, "\"",
                   did_you_mean(parts.symbol, object->functions));
  return Status::ok();
}

// The operands of the workload as files and buffers.
Result<FunctionTrial> trial_of(const FunctionUse& use, const VerifyData& data, int threads,
                               const ScratchFolder& folder) {
  FunctionTrial trial{.threads = threads, .buffers = {}, .functions = {}};
  FunctionTrial::Function function{.library = folder.file("used.so"), .symbol = use.symbol, .args = {}};
  RETURN_IF_ERROR(replace_file(function.library, *use.library));
  size_t input = 0;
  for (const Buffer& buffer : data.unscheduled.args) {
    function.args.push_back({trial.buffers.size(), 0});
    trial.buffers.push_back({.file = folder.file(str("operand", trial.buffers.size())),
                             .bytes = buffer->bytes(),
                             .given = is_given(buffer->role),
                             .result = is_result(buffer->role)});
    if (trial.buffers.back().given)
      RETURN_IF_ERROR(
          replace_file(trial.buffers.back().file, element_bytes(data.inputs[input++], buffer->dtype)));
  }
  trial.functions.push_back(std::move(function));
  return trial;
}

}  // namespace

Result<std::vector<FunctionUse>> find_uses(const std::vector<std::string>& words, const ModelSteps& model,
                                           const Target& target) {
  std::vector<FunctionUse> uses;
  std::map<std::string, std::shared_ptr<const std::string>> files;
  std::map<std::string, std::string> file_of_symbol;
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(const Parts parts, parts_of(word, model));
    ASSIGN_OR_RETURN(const size_t step, find_step(word, parts.node, model));
    if (model.steps[step].accelerated)
      return refused(word, "step ", model.steps[step].name,
                     " runs on the accelerator; leave --use out, or compile for the CPU");
    if (std::ranges::find(uses, step, &FunctionUse::step) != uses.end())
      return refused(word, "step ", model.steps[step].name, " has a function already");
    auto& bytes = files[parts.file];
    if (bytes == nullptr) {
      Result<std::string> read = read_file(parts.file, "a shared library", kMostBytes);
      if (!read) return refused(word, read.message());
      bytes = std::make_shared<const std::string>(*std::move(read));
    }
    RETURN_IF_ERROR(check_callable(word, parts, *bytes, target));
    // The loader looks a name up in all libraries of a model.
    const auto [other, is_new] = file_of_symbol.emplace(parts.symbol, parts.file);
    if (!is_new && *files[other->second] != *bytes)
      return refused(word, "a function of ", other->second,
                     " has the same name, and the loader would take one for both; rename one of them");
    uses.push_back({.step = step,
                    .word = word,
                    .from = std::filesystem::path(parts.file).filename().string(),
                    .symbol = parts.symbol,
                    .library = bytes});
  }
  return uses;
}

Result<UseCheck> UseCheck::run(const FunctionUse& use, const Workload& workload, int threads,
                               const std::function<bool()>& interrupted) {
  UseCheck check;
  check.word_ = use.word;
  ASSIGN_OR_RETURN(VerifyData data, make_verify_data(workload, /*seed=*/1));
  ASSIGN_OR_RETURN(check.folder_, ScratchFolder::make("tuner-use"));
  ASSIGN_OR_RETURN(check.trial_, trial_of(use, data, threads, *check.folder_));
  check.data_ = std::make_shared<const VerifyData>(std::move(data));
  const double limit_s = kLeastWaitS + static_cast<double>(workload.flops()) / kLeastFlopsPerS;
  check.limit_ = std::chrono::milliseconds(static_cast<int64_t>(1000 * limit_s));
  const auto tried = try_functions(check.trial_, check.folder_->path(), check.limit_, interrupted);
  if (!tried) return tried.status().with_context(str("--use ", use.word, ": "));
  RETURN_IF_ERROR(check.check_answer(".first"));
  return check;
}

Status UseCheck::check_answer(const std::string& ending) const {
  size_t output = 0;
  for (size_t a = 0; a < data_->unscheduled.args.size(); ++a) {
    const Buffer& buffer = data_->unscheduled.args[a];
    if (!is_result(buffer->role)) continue;
    ASSIGN_OR_RETURN(const std::string bytes, read_whole(trial_.buffers[a].file + ending));
    const std::vector<double>& expected = data_->answers[output++];
    const std::vector<double> found = load_elements(bytes.data(), buffer->elements(), buffer->dtype);
    for (size_t k = 0; k < expected.size(); ++k) {
      const Tolerance& t = data_->tolerance;
      // Not reversed: NaN is wrong.
      if (std::fabs(found[k] - expected[k]) <= t.absolute + t.relative * std::fabs(expected[k])) continue;
      return refused(word_, "computes something else than the step: ", buffer->name, "[",
                     index_text(static_cast<int64_t>(k), buffer->shape), "] is ",
                     std::isnan(found[k]) ? "nan" : str(found[k]), ", expected ", expected[k], " within ",
                     t.absolute + t.relative * std::fabs(expected[k]));
    }
  }
  return Status::ok();
}

// Our kernel as the second function: it takes constants packed.
Status UseCheck::add_packed(const BundleKernel& ours, FunctionTrial& trial) const {
  const std::vector<BundleKernel> kernels = {ours};
  const std::vector<CSignature> signatures = {c_signature(ours.task.workload, ours.code.manifest)};
  const Manifest& manifest = ours.code.manifest;
  FunctionTrial::Function function{.library = folder_->file("ours.so"),
                                   .symbol = manifest.entry,
                                   .args = {},
                                   .workspace_bytes = manifest.workspace_bytes,
                                   .workspace_bytes_per_thread = manifest.workspace_bytes_per_thread};
  ASSIGN_OR_RETURN(const std::string library, link_shared_library({ours.code.object}, ours.task.target, ""));
  RETURN_IF_ERROR(replace_file(function.library, library));
  std::vector<size_t> buffer_of(signatures[0].operands.size());
  std::vector<std::string> bytes;
  std::vector<size_t> constants;
  for (size_t a = 0; a < buffer_of.size(); ++a) {
    buffer_of[a] = a;
    if (signatures[0].operands[a].role != BufferRole::kConstant) continue;
    ASSIGN_OR_RETURN(std::string read, read_whole(trial.buffers[a].file));
    bytes.push_back(std::move(read));
    constants.push_back(a);
  }
  if (signatures[0].packs()) {
    ConstantPacker packer(kernels, signatures);
    ASSIGN_OR_RETURN(const std::vector<AlignedBuffer> packed, packer.pack(0, {bytes.begin(), bytes.end()}));
    for (size_t c = 0; c < constants.size(); ++c) {
      buffer_of[constants[c]] = trial.buffers.size();
      trial.buffers.push_back({.file = folder_->file(str("packed", c)),
                               .bytes = packed[c].bytes(),
                               .given = true,
                               .result = false});
      RETURN_IF_ERROR(replace_file(trial.buffers.back().file,
                                   {packed[c].as<char>(), static_cast<size_t>(packed[c].bytes())}));
    }
  }
  for (const ArgPlace& place : signatures[0].entry)
    function.args.push_back({buffer_of[place.arg], place.offset});
  trial.functions.push_back(std::move(function));
  return Status::ok();
}

Result<UseCheck::Times> UseCheck::time_beside(const BundleKernel& ours,
                                              const std::function<bool()>& interrupted) const {
  FunctionTrial trial = trial_;
  RETURN_IF_ERROR(add_packed(ours, trial));
  // Some dozen calls at most where one is slow.
  const auto times = try_functions(trial, folder_->path(), 8 * limit_, interrupted);
  if (!times) return times.status().with_context(str("--use ", word_, ": "));
  RETURN_IF_ERROR(check_answer(".last"));
  if (times->ns.size() != 2) return failed("--use ", word_, ": was not timed");
  return Times{times->ns[0], times->ns[1]};
}

BundleKernel used_kernel(const FunctionUse& use, const CliTask& task, const UseCheck::Times& times) {
  BundleKernel kernel{.function = use.symbol, .task = task};
  Manifest& manifest = kernel.code.manifest;
  manifest.entry = use.symbol;
  manifest.threads = task.target.threads;
  manifest.target = task.target_name;
  for (const Buffer& b : task.workload.compute().args)
    manifest.args.push_back({.name = b->name,
                             .role = b->role,
                             .dtype = b->dtype,
                             .shape = b->shape,
                             .layout = b->layout,
                             .bytes = b->bytes()});
  auto args = nlohmann::ordered_json::array();
  for (const ArgInfo& a : manifest.args)
    args.push_back({{"name", a.name},
                    {"role", buffer_role_name(a.role)},
                    {"dtype", dtype_name(a.dtype)},
                    {"shape", a.shape}});
  kernel.facts = {{"function", use.symbol},
                  {"args", std::move(args)},
                  {"workload", task.key},
                  {"answer", {{"kind", "used"}}}};
  if (times.used_ns > 0) {
    kernel.facts["measured"] = {{"time_ns", times.used_ns}, {"constants", "warm"}};
    kernel.facts["replaced"] = {{"time_ns", times.ours_ns}};  // our kernel's, in turn with it
  }
  return kernel;
}

}  // namespace tuner
