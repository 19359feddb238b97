#include "tuner/daemon/rooms/build_office.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "compiler_core/runtime/cuda_fit.h"
#include "tuner/daemon/edge/build_messages.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/edge/releases.h"
#include "tuner/daemon/tables/compiler_names.h"

namespace tuner {
namespace {

constexpr int64_t kBlobChunk = int64_t{256} << 10;
constexpr double kBuildLimitS = 10;
// A compiler may be a newer one than its builder said at registration, if that was updated under it.
bool suits_driver(const BuildNeed& need, const Made& made) {
  return need.newest_toolkit == 0 || toolkit_major(made.toolchain) <= need.newest_toolkit;
}

}  // namespace

BuildOffice::BuildOffice(Guarded<FarmState>& farm, const Clock& clock, const CoordinatorOptions& options,
                         DocumentOffice& documents, std::function<void()> wake_desk)
    : farm_(farm),
      clock_(clock),
      options_(options),
      documents_(documents),
      wake_desk_(std::move(wake_desk)) {}

Status BuildOffice::check_kind(WorkerKind kind) const {
  if (kind == WorkerKind::kFull || options_.blobs != nullptr) return Status::ok();
  return invalid_argument(
      "this daemon keeps no artifacts, so it has no use for builders and runners; it is one that a command "
      "has "
      "started for itself: use `tuner serve`");
}

// --- the bytes ---

std::optional<std::string> BuildOffice::key_asked(const FarmState& farm, const WorkerLife& life,
                                                  const v1::ReadBlobRequest& request) {
  if (!request.order_id().empty()) {
    const std::optional<BuildNeed> need = farm.builds.need_of(request.order_id());
    if (!need || !farm.builds.holds(life, request.order_id())) return std::nullopt;
    return need->workload_key;
  }
  const WorkerLife* const owner = farm.leases.owner(request.trial_id());
  const LeaseTable::Trial* const trial = farm.leases.find(request.trial_id());
  if (owner == nullptr || *owner != life || trial == nullptr) return std::nullopt;
  return trial->work.task.workload_key;
}

Status BuildOffice::read_blob(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply) {
  ASSIGN_OR_RETURN(const BlobName name, from_proto(request.blob(), "blob"));
  bool is_document = false;
  {
    const Locked farm(farm_);
    const WorkerLife* const life = farm->workers.life(request.session());
    if (life == nullptr) return {StatusCode::kAborted, "unknown session; register again and keep your work"};
    const std::optional<std::string> key = key_asked(*farm, *life, request);
    const DocumentName* const document = key ? document_of(*farm, *key) : nullptr;
    is_document = document != nullptr && document->blob == name;
    const bool is_built = key && request.order_id().empty() && farm->builds.names(request.trial_id(), name);
    if (!is_document && !is_built)
      return unavailable("blob ", name.sha256, " is not named by ",
                         request.order_id().empty() ? "lease " : "order ",
                         shown(request.order_id().empty() ? request.trial_id() : request.order_id()),
                         " of worker ", life->worker_id);
  }
  if (is_document) {
    ASSIGN_OR_RETURN(*reply->mutable_bytes(), documents_.read(name, request.offset(), kBlobChunk));
    return Status::ok();
  }
  Result<std::string> bytes = options_.blobs->read(name, request.offset(), kBlobChunk);
  if (bytes) return reply->set_bytes(*std::move(bytes)), Status::ok();
  if (bytes.status().code() == StatusCode::kNotFound) {
    const Locked farm(farm_);
    farm->builds.lost_blob(name, clock_.now_ms());
  }
  wake_desk_();
  return bytes.status();
}

Status BuildOffice::write_blob(const v1::WriteBlobRequest& request, v1::WriteBlobReply* reply) {
  ASSIGN_OR_RETURN(const BlobName name, from_proto(request.blob(), "blob"));
  if (std::ssize(request.bytes()) > kBlobChunk)
    return invalid_argument("bytes: found ", request.bytes().size(), ", expected at most ", kBlobChunk);
  {
    const Locked farm(farm_);
    const WorkerLife* const life = farm->workers.life(request.session());
    if (life == nullptr) return {StatusCode::kAborted, "unknown session; register again and keep your work"};
    if (!farm->builds.holds(*life, request.order_id()))
      return unavailable("worker ", life->worker_id, " does not hold order ", shown(request.order_id()));
  }
  ASSIGN_OR_RETURN(const int64_t have, options_.blobs->write(name, request.offset(), request.bytes()));
  reply->set_have(have);
  return Status::ok();
}

// --- orders ---

bool BuildOffice::is_usable(const FarmState& farm, const BuildNeed& need, const Made& made) const {
  CompilerNeed any = need.compiler();
  any.wanted = {};
  if (!made.toolchain.empty() && farm.workers.some_build(any, clock_.now_ms()) &&
      !farm.workers.has_toolchain(any, made.toolchain, clock_.now_ms()))
    return false;  // of a builder of before
  return suits_driver(need, made) && std::ranges::all_of(made.blobs(), [&](const BlobName& blob) {
           return options_.blobs->seems_to_have(blob);
         });
}

void BuildOffice::want(FarmState& farm, const std::string& trial_id) {
  const LeaseTable::Trial* const trial = farm.leases.find(trial_id);
  if (trial == nullptr || farm.builds.wants(trial_id)) return;
  const WorkerLife* const owner = farm.leases.owner(trial_id);
  const double limit_s =
      trial->work.options.build_timeout_s > 0 ? trial->work.options.build_timeout_s : kBuildLimitS;
  farm.builds.want(
      trial_id, needs_to_build(*trial, owner == nullptr ? 0 : farm.workers.cuda_driver(owner->worker_id)),
      limit_s, clock_.now_ms(),
      [&](const BuildNeed& need, const Made& made) { return is_usable(farm, need, made); },
      [&](const std::string& id, const BuildNeed& need) { return recall(farm, id, need); });
}

// What a daemon of before, or this one long ago, was told of the order. Artifacts only of compilers that are
// here: runners come back before builders, and what an older compiler made would be taken for theirs.
std::optional<Made> BuildOffice::recall(const FarmState& farm, const std::string& id,
                                        const BuildNeed& need) const {
  v1::Built built;
  const std::optional<std::string> bytes = options_.made == nullptr ? std::nullopt : options_.made->find(id);
  if (!bytes || !built.ParseFromString(*bytes)) return std::nullopt;
  Result<Made> made = from_proto(built, "made");
  if (!made || made->data.empty() == need.data) return std::nullopt;
  if (!need.data && !farm.workers.has_toolchain(need.compiler(), made->toolchain, clock_.now_ms()))
    return std::nullopt;
  return *std::move(made);
}

// Kept over restarts is what was made. What could not be made is tried again: another release may make it.
void BuildOffice::remember(const std::string& id, const Made& made) {
  if (options_.made == nullptr || made.outcome != BuildOutcome::kOk) return;
  v1::Built built;
  to_proto(made, &built);
  built.clear_message();
  const Status kept = options_.made->put(id, built.SerializeAsString());
  if (kept) return;
  if (const auto more = disk_log_.say())
    spdlog::warn("what builders made is forgotten at the next start: {}{}", kept.message(), *more);
}

// --- with a Sync ---

void BuildOffice::take_awaits(FarmState& farm, SyncCall& call) {
  if (farm.workers.kind(call.session()) != WorkerKind::kRunner) return;
  for (const v1::HeldLease& held : call.request->held()) {
    const LeaseTable::Trial* const trial = farm.leases.find(held.trial_id());
    if (!held.awaits_build() || trial == nullptr) continue;  // one that is not known is revoked
    const WorkerLife* const owner = farm.leases.owner(held.trial_id());
    if (owner != nullptr && *owner == call.life && trial->fencing == held.fencing()) {
      want(farm, held.trial_id());  // the daemon may be a new one
      call.awaits.insert(held.trial_id());
      continue;
    }
    // It has run out. Others go on as they are, for their results are welcome; of this one there will be
    // none.
    v1::Ack* const revoked = call.reply->add_revoked();
    revoked->set_trial_id(held.trial_id());
    revoked->set_attempt(held.attempt());
  }
}

void BuildOffice::take_builds(FarmState& farm, SyncCall& call) {
  const v1::SyncRequest& request = *call.request;
  if (farm.workers.kind(call.session()) != WorkerKind::kBuilder) return;
  for (int i = 0; i < request.built_size(); ++i) take_built(farm, call, request.built(i), i);
  for (const std::string& id : request.returned_builds()) farm.builds.give_back(id, call.life);
  call.builds = held_of(request.builds());
  call.build_slots = request.unfit().empty()
                         ? std::clamp(request.free_builds(), 0, kMaxBuildsPerSync - request.builds_size())
                         : 0;
  const Builds::Heartbeat beat =
      farm.builds.heartbeat(call.life, call.builds, /*first=*/true, clock_.now_ms());
  for (const std::string& id : beat.stop) call.reply->add_stop_builds(id);
  for (const Builds::Order& order : beat.missing) add_order(farm, order, call.reply);
}

void BuildOffice::add_order(const FarmState& farm, const Builds::Order& order, v1::SyncReply* reply) {
  v1::BuildOrder* const out = reply->add_orders();
  to_proto(order, out);
  if (const DocumentName* const document = document_of(farm, order.need.workload_key))
    to_proto(document->blob, out->mutable_document());
}

void BuildOffice::take_built(FarmState& farm, const SyncCall& call, const v1::BuildDone& done, int index) {
  const LogAbout about({.worker = call.life.worker_id});
  const int64_t now = clock_.now_ms();
  call.reply->add_build_acks(done.id());
  Result<Made> made = from_proto(done.built(), str("built[", index, "]"));
  if (!made) {
    if (const auto more = refused_log_.say())
      spdlog::error("an answer of builder {} is refused: {}{}", call.life.worker_id, shown(made.message()),
                    *more);
    return farm.builds.could_not(done.id(), call.life, "its answer was refused", now);
  }
  if (made->outcome == BuildOutcome::kUnable)
    return farm.builds.could_not(done.id(), call.life, made->message, now);
  const std::optional<BuildNeed> need = farm.builds.need_of(done.id());
  if (made->outcome == BuildOutcome::kOtherVersion) {
    if (need && farm.workers.note_lacks(call.session(), need->wanted, done.found_version()))
      spdlog::warn("{}", lacks_line(call.life.worker_id, {{need->wanted, done.found_version()}}));
    return farm.builds.could_not(done.id(), call.life, made->message, now);
  }
  if (need && made->outcome == BuildOutcome::kOk &&
      (made->data.empty() == need->data || !suits_driver(*need, *made)))
    return farm.builds.could_not(done.id(), call.life, "it made something else than was ordered", now);
  for (const BlobName& blob : made->blobs())
    if (!options_.blobs->has(blob))
      return farm.builds.could_not(done.id(), call.life, "what it made did not arrive", now);
  if (!farm.builds.done(done.id(), *made)) return;
  farm.workers.count_trial(call.session());
  remember(done.id(), *made);
}

void BuildOffice::look_after(FarmState& farm, const WaitingSyncs& waiting) {
  if (options_.blobs == nullptr) return;
  const int64_t now = clock_.now_ms();
  for (const auto& [session, call] : waiting)
    if (!call->builds.empty() && farm.workers.check(session, call->number, now) == Workers::Call::kCurrent)
      (void)farm.builds.heartbeat(call->life, call->builds, /*first=*/false, now);
  farm.builds.forget_if([&](const std::string& trial) { return farm.leases.owner(trial) == nullptr; });
  farm.builds.expire(now);
}

void BuildOffice::serve(const WaitingSyncs& waiting, const SyncCalls& arrived) {
  if (options_.blobs == nullptr) return;
  const Locked farm(farm_);
  for (const auto& [session, call] : waiting) serve(*farm, *call);
  for (const std::unique_ptr<SyncCall>& call : arrived) serve(*farm, *call);
}

void BuildOffice::serve(FarmState& farm, SyncCall& call) const {
  if (call.answered || call.gone) return;
  if (call.build_slots > 0) {
    const Builds::Asker asker{
        .makes = [&](const BuildNeed& need) { return farm.workers.builds(call.session(), need.compiler()); },
        .others =
            [&](const BuildNeed& need, const std::set<std::string>& except) {
              return farm.workers.some_build(need.compiler(), clock_.now_ms(), except);
            }};
    for (const Builds::Order& order :
         farm.builds.take(call.life, static_cast<size_t>(call.build_slots), asker, clock_.now_ms())) {
      add_order(farm, order, call.reply);
      --call.build_slots;
    }
  }
  std::erase_if(call.awaits, [&](const std::string& trial_id) {
    const LeaseTable::Trial* const trial = farm.leases.find(trial_id);
    const std::vector<const Made*> answers = farm.builds.answers(trial_id);
    if (trial == nullptr || answers.empty()) return trial == nullptr;
    to_proto(*trial, answers, call.reply->add_built());
    return true;
  });
}

// --- for people ---

std::string BuildOffice::builder_to_tell(const FarmState& farm, const std::string& job_id, bool& told) const {
  const auto makes_nobody = [&](const BuildNeed& need) {
    return !farm.workers.some_build(need.compiler(), clock_.now_ms());
  };
  const std::optional<int64_t> oldest = farm.builds.oldest_ms(makes_nobody);
  if (!oldest) return told = false, "";
  if (told || clock_.now_ms() - *oldest < options_.no_worker_hint_ms) return "";
  for (const auto& [need, trials] : farm.builds.waiting_of(makes_nobody)) {
    const bool ours = std::ranges::any_of(trials, [&](const std::string& id) {
      const LeaseTable::Trial* const trial = farm.leases.find(id);
      return trial != nullptr && trial->job_id == job_id;
    });
    if (!ours) continue;
    told = true;
    const WorkerLife* const runner = farm.leases.owner(*trials.begin());
    return str("runner ", runner == nullptr ? "" : runner->worker_id,
               " waits for a builder: none is here that compiles for \"", need.compiler().family, "\"",
               toolkit_text(need.newest_toolkit),
               need.data ? "" : str(" with template ", need.wanted.name, " version ", need.wanted.version),
               need.source_compiler.empty() ? "" : str(" and has ", compiler_text(need.source_compiler)),
               "; start one: measure_server --kind builder --daemon ADDRESS");
  }
  return "";
}

}  // namespace tuner
