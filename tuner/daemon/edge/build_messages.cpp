#include "tuner/daemon/edge/build_messages.h"

#include <cmath>

#include "compiler_core/runtime/cuda_fit.h"
#include "tuner/daemon/edge/messages.h"

namespace tuner {
namespace {

constexpr int kMostSets = 4, kMostFiles = 64;
constexpr size_t kLongestArg = 256;

Status check_number(std::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return Status::ok();
  return invalid_argument(field, ": expected a finite number >= 0, found ", value);
}

template <class Messages>
Result<std::vector<Made::File>> files_of(const Messages& messages, const std::string& field) {
  if (messages.size() > kMostFiles)
    return invalid_argument(field, ": found ", messages.size(), ", expected at most ", kMostFiles);
  std::vector<Made::File> files;
  for (const auto& message : messages) {
    if (message.arg().empty() || message.arg().size() > kLongestArg)
      return invalid_argument(field, ".arg: expected 1 to ", kLongestArg, " bytes, found ",
                              message.arg().size());
    ASSIGN_OR_RETURN(BlobName blob, from_proto(message.blob(), field + ".blob"));
    files.push_back({message.arg(), std::move(blob)});
  }
  return files;
}

}  // namespace

void to_proto(const BlobName& name, v1::Blob* out) {
  out->set_sha256(name.sha256);
  out->set_bytes(name.bytes);
}

std::vector<BuildNeed> needs_to_build(const LeaseTable::Trial& trial, int cuda_driver) {
  const Work& work = trial.work;
  const int newest_toolkit = newest_toolkit_for(work.task.target, cuda_driver);
  std::vector<BuildNeed> needs;
  const auto add = [&](const std::string& name, int version, const std::string& config) {
    needs.push_back({.workload_key = work.task.workload_key,
                     .target = work.task.target,
                     .wanted = {name, version},
                     .config = config,
                     .newest_toolkit = newest_toolkit,
                     .source_compiler = work.compiler});
  };
  if (work.kind != WorkKind::kRace) add(work.template_name, work.template_version, work.config);
  for (const TrialRow& f : work.finalists) add(f.template_name, f.template_version, f.config);
  needs.push_back({.data = true,
                   .workload_key = work.task.workload_key,
                   .input_seed = kInputSeed,
                   .source_compiler = work.compiler});
  return needs;
}

Result<BlobName> from_proto(const v1::Blob& blob, std::string_view field) {
  BlobName name{blob.sha256(), blob.bytes()};
  if (const Status named = check_blob_name(name); !named) return named.with_context(str(field, ": "));
  return name;
}

Result<Made> from_proto(const v1::Built& built, std::string_view field) {
  const std::optional<BuildOutcome> outcome = build_outcome_from_name(built.outcome());
  if (!outcome)
    return invalid_argument(
        field, ".outcome: found \"", shown(built.outcome()),
        "\", expected ok, invalid_config, build_error, build_timeout, unable or other_version");
  Made made{.outcome = *outcome,
            .message = shown(built.message()),
            .toolchain = shown(built.toolchain()),
            .build_ms = built.build_ms(),
            .absolute = built.absolute(),
            .relative = built.relative(),
            .direct = built.direct()};
  RETURN_IF_ERROR(check_number(str(field, ".build_ms"), made.build_ms));
  RETURN_IF_ERROR(check_number(str(field, ".absolute"), made.absolute));
  RETURN_IF_ERROR(check_number(str(field, ".relative"), made.relative));
  if (made.outcome != BuildOutcome::kOk) return made;
  if (built.data_size() > kMostSets)
    return invalid_argument(field, ".data: found ", built.data_size(), " sets, expected at most ", kMostSets);
  if (built.data_size() == 0) {
    ASSIGN_OR_RETURN(made.artifact, from_proto(built.artifact(), str(field, ".artifact")));
    return made;
  }
  for (const v1::DataSet& set : built.data()) {
    Made::Set& to = made.data.emplace_back(Made::Set{.seed = set.seed()});
    ASSIGN_OR_RETURN(to.inputs, files_of(set.inputs(), str(field, ".data.inputs")));
    ASSIGN_OR_RETURN(to.references, files_of(set.references(), str(field, ".data.references")));
  }
  return made;
}

std::vector<Builds::Held> held_of(const google::protobuf::RepeatedPtrField<v1::HeldBuild>& builds) {
  std::vector<Builds::Held> held;
  for (const v1::HeldBuild& h : builds) held.push_back({h.id(), h.at_work()});
  return held;
}

void to_proto(const Builds::Order& order, v1::BuildOrder* out) {
  out->set_id(order.id);
  out->set_data(order.need.data);
  out->set_workload_key(order.need.workload_key);
  out->set_target(order.need.target);
  out->set_template_name(order.need.wanted.name);
  out->set_template_version(order.need.wanted.version);
  out->set_config(order.need.config);
  out->set_input_seed(order.need.input_seed);
  out->set_limit_s(order.limit_s);
}

void to_proto(const Made& made, v1::Built* out) {
  out->set_outcome(std::string(build_outcome_name(made.outcome)));
  out->set_message(made.message);
  out->set_toolchain(made.toolchain);
  out->set_build_ms(made.build_ms);
  if (!made.artifact.sha256.empty()) to_proto(made.artifact, out->mutable_artifact());
  out->set_absolute(made.absolute);
  out->set_relative(made.relative);
  out->set_direct(made.direct);
  for (const Made::Set& set : made.data) {
    v1::DataSet* const to = out->add_data();
    to->set_seed(set.seed);
    for (const Made::File& file : set.inputs) {
      v1::Input* const input = to->add_inputs();
      input->set_arg(file.arg);
      to_proto(file.blob, input->mutable_blob());
    }
    for (const Made::File& file : set.references) {
      v1::Reference* const reference = to->add_references();
      reference->set_arg(file.arg);
      to_proto(file.blob, reference->mutable_blob());
    }
  }
}

void to_proto(const LeaseTable::Trial& trial, const std::vector<const Made*>& answers, v1::LeaseBuilt* out) {
  out->set_trial_id(trial.id);
  out->set_attempt(trial.attempt);
  for (const Made* const made : answers)
    to_proto(*made, made == answers.back() ? out->mutable_data() : out->add_artifacts());
}

}  // namespace tuner
