#include "measure_server/worker/builder.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/backend.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/room.h"
#include "compiler_core/codegen/reference.h"
#include "compiler_core/foreign/commands.h"
#include "compiler_core/foreign/compilers.h"
#include "measure_server/runner/frame.h"
#include "measure_server/worker/shared_cache.h"
#include "measure_server/worker/task_data.h"
#include "templates/workload/key_document.h"
#include "templates/workload/task_memory.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

BuildReply refusal(BuildOutcome outcome, const Status& status) {
  BuildReply reply;
  reply.outcome = status.code() == StatusCode::kInvalidConfig ? BuildOutcome::kInvalidConfig : outcome;
  reply.message = status.message();
  return reply;
}

// Compiling takes some hundred MB at most; a compiler that wants more has run away, and shall cost its
// candidate, not the machine.
constexpr int64_t kMostOfABuild = int64_t{4} << 30;

// What this process may allocate, while it lives; then what it might before.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose shadow counts as allocated
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit now{std::min(static_cast<rlim_t>(bytes), before_.rlim_max), before_.rlim_max};
    ::setrlimit(RLIMIT_DATA, &now);
#else
    (void)bytes;
#endif
  }
  ~MemoryLimit() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ::setrlimit(RLIMIT_DATA, &before_);
#endif
  }
  MemoryLimit(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

constexpr size_t kMaxInstances = 64;
constexpr int64_t kBytesBeside = 8192;  // on disk, of the two small files beside an artifact

// Artifacts by what they are made from, so that a candidate proposed again, by another job say, is not built
// again.
fs::path index_path(const BuildRequest& r, const std::string& toolchain) {
  return fs::path(r.directory) / "artifacts" / "by_source" /
         sha256_hex(str(r.workload_key, "|", r.target, "|", r.template_name, "|", r.template_version, "|",
                        r.config, "|", toolchain));
}

// The version of the template in this release; 0: it has none.
int version_here(const std::string& template_name) {
  const AnyTemplate* found = find_template(template_name);
  return found == nullptr ? 0 : found->version();
}

Status other_version(const BuildRequest& r) {
  if (const int here = version_here(r.template_name); here > 0)
    return failed("template ", r.template_name, " is version ", here, " here, the trial wants ",
                  r.template_version, "; run the same release on daemon and worker");
  return failed("this worker has no template ", r.template_name,
                "; its programs are older than the daemon's: update them");
}

// Whose code it will be. Where a key names a document, that says which compiler.
Result<std::string> toolchain_of(const Backend& backend, const std::string& workload_key) {
  if (!document_of_key(workload_key)) return backend.toolchain();
  ASSIGN_OR_RETURN(const Workload workload, workload_from_key(workload_key));
  return backend.toolchain_for(workload.compute());
}

// What its template says of an artifact.
void describe(const BuildRequest& r, BuildReply& reply) {
  const AnyTemplate* const by = find_template(r.template_name);
  const Result<Workload> workload = workload_from_key(r.workload_key);
  const Result<Target> target = parse_target(r.target);
  if (by == nullptr || !workload || !target) return;
  const Tolerance allowed = by->tolerance(*workload);
  reply.absolute = allowed.absolute;
  reply.relative = allowed.relative;
  reply.direct = by->algorithm() == "direct";
  if (const Backend* const backend = find_backend(*target->family))
    if (const Result<std::string> toolchain = toolchain_of(*backend, r.workload_key))
      reply.toolchain = *toolchain;
}

}  // namespace

// Requires that this release has the template in that version.
Result<const TemplateInstance*> Builder::instance(const BuildRequest& r, const Workload& workload,
                                                  const Target& target) {
  const std::string key = str(r.workload_key, "|", r.target, "|", r.template_name, "|", r.template_version);
  if (const auto known = instances_.find(key); known != instances_.end()) return known->second.get();
  const AnyTemplate* found = find_template(r.template_name);
  if (const Support support = found->supports(workload, target); !support.yes)
    return failed(r.template_name, " does not serve this task: ", support.reason);
  ASSIGN_OR_RETURN(std::unique_ptr<TemplateInstance> made, found->apply(workload, target));
  if (instances_.size() >= kMaxInstances) instances_.clear();
  return (instances_[key] = std::move(made)).get();
}

BuildReply Builder::hello(const BuildRequest& request) {
  BuildReply reply{.outcome = BuildOutcome::kOk};
  if (request.family.empty())
    for (const AnyTemplate* t : all_templates())
      reply.templates.push_back({std::string(t->name()), t->version()});
  for (const Backend* backend : all_backends()) {
    if (!request.family.empty() && backend->family().word() != request.family) continue;
    std::vector<std::string> targets = backend->targets_of_host(request.device);
    if (targets.empty()) continue;
    BuildReply::BackendHere here{.family = std::string(backend->family().word()),
                                 .targets = std::move(targets),
                                 .features = backend->host_features()};
    if (const Status able = backend->available(); able)
      here.toolchain = backend->toolchain();
    else
      here.unable = able.message();
    reply.backends.push_back(std::move(here));
  }
  return reply;
}

// Asked by builders alone: it loads every compiler, and NVRTC is a hundred megabytes.
BuildReply Builder::compilers() {
  BuildReply reply{.outcome = BuildOutcome::kOk};
  for (const Backend* backend : all_backends())
    if (backend->available())
      reply.compilers.push_back({std::string(backend->family().word()), backend->toolchain()});
  return reply;
}

// What is listed and not there is left out: it gets no work that needs it.
BuildReply Builder::sources() {
  BuildReply reply{.outcome = BuildOutcome::kOk};
  for (const std::string& name : listed_compilers())
    if (const Result<Compiler> compiler = find_compiler(name))
      reply.source_compilers.push_back({name, toolchain_text(*compiler)});
  for (const auto& [name, toolchain] : command_offers()) reply.source_compilers.push_back({name, toolchain});
  return reply;
}

BuildReply Builder::build(const BuildRequest& r) {
  const auto start = std::chrono::steady_clock::now();
  BuildOutcome blame = BuildOutcome::kUnable;  // until the candidate itself is at work
  const auto compiled = [&]() -> Result<std::string> {
    const fs::path artifacts = fs::path(r.directory) / "artifacts";
    ASSIGN_OR_RETURN(const Target target, parse_target(r.target));
    const Backend* backend = find_backend(*target.family);
    if (backend == nullptr) return failed("this worker has no back end for \"", r.target, "\"");
    ASSIGN_OR_RETURN(const std::string toolchain, toolchain_of(*backend, r.workload_key));
    const fs::path index = index_path(r, toolchain);
    if (const Result<std::string> known = read_whole(index); known.is_ok()) {
      // Loading verifies: files damaged or half written in a power loss are made anew.
      if (load_artifact(artifacts.string(), *known).is_ok()) {
        touch_artifact(artifacts, *known, index);
        return *known;
      }
      remove_artifact(artifacts.string(), *known);
    }
    ASSIGN_OR_RETURN(const Workload workload, workload_from_key(r.workload_key));
    ASSIGN_OR_RETURN(const Config config, config_from_text(r.config));
    if (version_here(r.template_name) != r.template_version) {
      blame = BuildOutcome::kOtherVersion;
      return other_version(r);
    }
    ASSIGN_OR_RETURN(const TemplateInstance* found, instance(r, workload, target));
    if (const Result<ConfigIndex> index_of = found->space().index_of(config); !index_of.is_ok())
      return invalid_config(index_of.message());
    blame = BuildOutcome::kBuildError;
    ASSIGN_OR_RETURN(const Program program, found->instantiate(config));
    const Result<Artifact> artifact = backend->compile(program, target, r.directory);
    // No compiler here is no fault of the candidate's.
    if (artifact.is_ok() || artifact.status().code() == StatusCode::kUnavailable)
      blame = BuildOutcome::kUnable;
    if (!artifact.is_ok()) return artifact.status();
    ASSIGN_OR_RETURN(const std::string digest,
                     save_artifact(*artifact, artifacts.string(), Durability::kCached));
    RETURN_IF_ERROR(make_folders(index.parent_path()));
    RETURN_IF_ERROR(replace_file(index, digest));
    cache_.added(static_cast<int64_t>(artifact->binary.size()) + kBytesBeside);
    return digest;
  }();
  BuildReply reply = compiled.is_ok() ? BuildReply{.outcome = BuildOutcome::kOk, .digest = *compiled}
                                      : refusal(blame, compiled.status());
  if (compiled.is_ok()) describe(r, reply);
  if (reply.outcome == BuildOutcome::kOtherVersion) reply.found = version_here(r.template_name);
  reply.build_ms = ms_since(start);
  return reply;
}

BuildReply Builder::data(const BuildRequest& r) {
  const auto made = [&]() -> Result<TaskData> {
    ASSIGN_OR_RETURN(const Workload workload, workload_from_key(r.workload_key));
    RETURN_IF_ERROR(
        fits(workload, {.memory_bytes = available_memory(), .disk_bytes = available_disk(r.directory)}));
    const int most = reference_threads(workload.compute());
    const int threads = r.threads > 0 ? std::min(r.threads, most) : most;
    const MemoryLimit limit(task_memory(workload).making_bytes + kMostOfABuild);
    return task_data(workload, r.input_seed, (fs::path(r.directory) / "references").string(), threads);
  }();
  if (made.is_ok()) cache_.added(made->made_bytes);
  if (!made.is_ok()) return refusal(BuildOutcome::kUnable, made.status());
  BuildReply reply;
  reply.outcome = BuildOutcome::kOk;
  reply.absolute = made->absolute;
  reply.relative = made->relative;
  const auto listed = [](const std::vector<std::pair<std::string, std::string>>& files) {
    std::vector<BuildReply::Data> out;
    for (const auto& [arg, path] : files) out.push_back({arg, path});
    return out;
  };
  reply.inputs = listed(made->inputs);
  reply.references = listed(made->references);
  for (const TaskData::Set& set : made->others)
    reply.others.push_back({listed(set.inputs), listed(set.references), set.seed});
  return reply;
}

void Builder::keep_cache() {
  if (!cache_folder_.empty()) cache_.keep(cache_folder_, {.most_bytes = cache_bytes_});
}

BuildReply Builder::answer(const BuildRequest& request) {
  if (!request.directory.empty()) {
    if (cache_folder_ != request.directory) documents_.emplace(request.directory);
    cache_folder_ = request.directory;
    cache_bytes_ = request.cache_bytes;
  }
  const MemoryLimit limit(kMostOfABuild);
  if (request.kind == "hello") return hello(request);
  if (request.kind == "compilers") return compilers();
  if (request.kind == "sources") return sources();
  if (request.kind == "build") return build(request);
  if (request.kind == "data") return data(request);
  return refusal(BuildOutcome::kUnable, failed("build request: kind: found \"", request.kind,
                                               "\", expected hello, compilers, sources, build or data"));
}

int run_builder() {
  Builder builder;
  const auto a_day = std::chrono::hours(24);
  for (;;) {
    const Result<std::string> frame = read_frame(kBuilderFd, std::chrono::steady_clock::now() + a_day);
    if (!frame.is_ok()) {
      if (frame.status().code() == StatusCode::kDeadlineExceeded) continue;
      return 0;
    }
    const Result<BuildRequest> request = parse_build_request(*frame);
    const BuildReply reply =
        request.is_ok() ? builder.answer(*request) : refusal(BuildOutcome::kUnable, request.status());
    if (!write_frame(kBuilderFd, to_json(reply), std::chrono::steady_clock::now() + std::chrono::seconds(30))
             .is_ok())
      return 0;
    builder.keep_cache();
  }
}

}  // namespace tuner
