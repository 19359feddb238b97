#include "measure_server/worker/remote_maker.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/target.h"
#include "measure_server/worker/runner_host.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostTold = 4'096;
constexpr int64_t kBytesBeside = 8192;  // on disk, of the two small files beside an artifact

BuildReply reply_of(const v1::Built& built) {
  BuildReply reply;
  // Of a daemon that knows more: not made, as far as this release can tell.
  reply.outcome = build_outcome_from_name(built.outcome()).value_or(BuildOutcome::kUnable);
  reply.message = built.message();
  reply.build_ms = built.build_ms();
  reply.toolchain = built.toolchain();
  reply.direct = built.direct();
  reply.absolute = built.absolute();
  reply.relative = built.relative();
  return reply;
}

// Where the digest of an artifact is found by the name it has on the wire.
fs::path index_path(const BuildRequest& request, const v1::Blob& blob) {
  return fs::path(request.directory) / "artifacts" / "by_source" / str("blob-", blob.sha256());
}

std::vector<BuildReply::Data> listed(const TaskData::Files& files) {
  std::vector<BuildReply::Data> out;
  for (const auto& [arg, path] : files) out.push_back({arg, path});
  return out;
}

// The inputs made here are those that the builder made.
Status check_inputs(const v1::DataSet& set, const TaskData::Files& files) {
  if (set.inputs_size() != std::ssize(files))
    return not_found("the builder has ", set.inputs_size(), " inputs of the task, this worker ", files.size(),
                     "; run the same release on both");
  for (int i = 0; i < set.inputs_size(); ++i) {
    const auto& [arg, path] = files.at(static_cast<size_t>(i));
    ASSIGN_OR_RETURN(const std::string bytes, read_whole(path));
    if (set.inputs(i).arg() != arg || sha256_hex(bytes) != set.inputs(i).blob().sha256())
      return failed("input ", arg, " of seed ", set.seed(),
                    " is not the one that the builder made; run the same release on both");
  }
  return Status::ok();
}

}  // namespace

void RemoteBuilds::take(const v1::LeaseBuilt& built) {
  const std::lock_guard lock(mutex_);
  if (told_.size() >= kMostTold) told_.clear();  // leases that wait for theirs are told again
  told_[built.trial_id()] = built;
}

Result<BuildReply> RemoteBuilds::answer(const BuildRequest& request) {
  if (request.kind == "hello")
    return request.family.empty() ? hello_ : runner_device(request.family, request.device);
  v1::LeaseBuilt told;
  {
    const std::lock_guard lock(mutex_);
    const auto found = told_.find(request.trial_id);
    if (found == told_.end()) return not_found("nothing was told of the build of ", request.trial_id);
    told = found->second;
  }
  if (request.kind == "data") return data(request, told.data());
  if (request.candidate >= told.artifacts_size())
    return not_found("nothing was told of build ", request.candidate, " of ", request.trial_id);
  return artifact(request, told.artifacts(request.candidate));
}

Result<BuildReply> RemoteBuilds::artifact(const BuildRequest& request, const v1::Built& built) {
  BuildReply reply = reply_of(built);
  if (reply.outcome != BuildOutcome::kOk) return reply;
  ASSIGN_OR_RETURN(reply.digest, fetch_artifact(request, built.artifact()));
  return reply;
}

Result<std::string> RemoteBuilds::fetch_artifact(const BuildRequest& request, const v1::Blob& blob) {
  const fs::path artifacts = fs::path(request.directory) / "artifacts", index = index_path(request, blob);
  if (const Result<std::string> known = read_whole(index); known.is_ok()) {
    if (load_artifact(artifacts.string(), *known).is_ok()) {
      touch_artifact(artifacts, *known, index);
      return *known;
    }
    remove_artifact(artifacts.string(), *known);
  }
  ASSIGN_OR_RETURN(const std::string bytes, transfer_.fetch(request.trial_id, blob));
  const Result<Artifact> fetched = parse_artifact_blob(bytes);
  if (!fetched) return failed(fetched.message());
  if (fetched->manifest.target != request.target)
    return failed("the artifact is for \"", fetched->manifest.target, "\", the lease for \"", request.target,
                  "\"");
  ASSIGN_OR_RETURN(const std::string digest,
                   save_artifact(*fetched, artifacts.string(), Durability::kCached));
  RETURN_IF_ERROR(make_folders(index.parent_path()));
  RETURN_IF_ERROR(replace_file(index, digest));
  added(request, std::ssize(fetched->binary) + kBytesBeside);
  return digest;
}

Status RemoteBuilds::fetch_references(const BuildRequest& request, const v1::DataSet& set,
                                      const TaskData::Files& files) {
  if (set.references_size() != std::ssize(files))
    return failed("the builder has ", set.references_size(), " answers of the task, this worker ",
                  files.size(), "; run the same release on both");
  for (int i = 0; i < set.references_size(); ++i) {
    ASSIGN_OR_RETURN(const std::string bytes, transfer_.fetch(request.trial_id, set.references(i).blob()));
    RETURN_IF_ERROR(replace_file(files.at(static_cast<size_t>(i)).second, bytes));
  }
  return Status::ok();
}

Result<BuildReply> RemoteBuilds::data(const BuildRequest& request, const v1::Built& built) {
  BuildReply reply = reply_of(built);
  if (reply.outcome != BuildOutcome::kOk) return reply;
  ASSIGN_OR_RETURN(const Workload workload, workload_from_key(request.workload_key));
  const std::lock_guard lock(data_mutex_);
  TaskData data =
      task_files(workload, request.input_seed, (fs::path(request.directory) / "references").string());
  // A set of another drawn seed is as good as the one that is here.
  if (!is_complete(workload, data)) {
    if (built.data_size() != 1 + std::ssize(data.others))
      return failed("the builder made ", built.data_size(), " sets of data, expected ",
                    1 + data.others.size(), "; run the same release on both");
    const Program program = workload.compute();
    TaskDataMaking making(data);
    TaskData& made = making.data;
    for (int i = 0; i < built.data_size(); ++i) {
      const bool other = i > 0;
      const v1::DataSet& set = built.data(i);
      const TaskData::Files& inputs = other ? made.others[0].inputs : made.inputs;
      const uint64_t other_seed = other ? set.seed() : 0;
      ASSIGN_OR_RETURN(const std::vector<std::string> bytes,
                       given_bytes(workload, program, request.input_seed, other_seed));
      RETURN_IF_ERROR(write_inputs(program, bytes, other, inputs));
      RETURN_IF_ERROR(check_inputs(set, inputs));
      RETURN_IF_ERROR(fetch_references(request, set, other ? made.others[0].references : made.references));
      if (other) made.others[0].seed = other_seed;
    }
    RETURN_IF_ERROR(making.put_in_place(workload, data));
    added(request, data.made_bytes);
  }
  reply.absolute = data.absolute;
  reply.relative = data.relative;
  reply.inputs = listed(data.inputs);
  reply.references = listed(data.references);
  for (const TaskData::Set& set : data.others)
    reply.others.push_back({listed(set.inputs), listed(set.references), set.seed});
  return reply;
}

void RemoteBuilds::added(const BuildRequest& request, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  cache_.added(bytes);
  cache_.keep(request.directory, {.most_bytes = request.cache_bytes});
}

}  // namespace tuner
