#include "tests/sim/builder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler_core/artifact/artifact.h"

namespace tuner::sim {
namespace {

constexpr int kAtOnce = 2, kSlots = 4, kMostBuilt = 64, kMostRefusals = 5;

v1::Blob name_of(const std::string& bytes) {
  v1::Blob blob;
  blob.set_sha256(sha256_hex(bytes));
  blob.set_bytes(std::ssize(bytes));
  return blob;
}

}  // namespace

std::string made_of(const std::string& template_name, int version, const std::string& config) {
  return str("made of ", template_name, " ", version, " ", config);
}
std::string answer_of(const std::string& workload_key, uint64_t seed) {
  return str("answer of ", workload_key, " ", seed);
}

v1::RegisterRequest Builder::hello() const {
  v1::RegisterRequest request = registration(id_, life());
  request.set_kind(v1::BUILDER);
  v1::Compiler* const compiler = request.add_compilers();
  compiler->set_family("llvm");
  compiler->set_toolchain(toolchain_);
  add_templates(request, /*newest=*/kind_ != Kind::kOther);
  return request;
}

v1::SyncRequest Builder::what_to_say() {
  v1::SyncRequest request;
  request.set_free_builds(std::max(0, kSlots - static_cast<int>(held_.size())));
  request.set_wait_ms(owed_.empty() ? 2'000 : 0);
  for (const auto& [id, held] : held_) {
    v1::HeldBuild* const h = request.add_builds();
    h->set_id(id);
    h->set_at_work(held.at_work);
  }
  for (const auto& [id, done] : owed_)
    if (request.built_size() < kMostBuilt) *request.add_built() = done;
  for (auto& [id, told] : returned_) {
    request.add_returned_builds(id);
    told = true;
  }
  return request;
}

void Builder::forget() {
  toolchain_ = farm_.dice.chance(0.3) ? "llvm 23" : "llvm 22";  // it may be updated before it starts again
  held_.clear();
  owed_.clear();
  returned_.clear();
  working_ = 0;
}

void Builder::hear(const v1::SyncReply& reply) {
  for (const std::string& id : reply.build_acks()) owed_.erase(id);
  std::erase_if(returned_, [](const auto& entry) { return entry.second; });
  for (const std::string& id : reply.stop_builds())
    if (const auto held = held_.find(id); held != held_.end() && !held->second.at_work) held_.erase(held);
  for (const v1::BuildOrder& order : reply.orders()) {
    farm_.note("order " + order.id(), 0);
    if (kind_ == Kind::kOther && order.template_name() == kNewer)
      farm_.violation(id_ + " was ordered what it said it cannot build: " + order.config());
    if (!owed_.contains(order.id())) held_.try_emplace(order.id(), Held{.order = order, .place = places_++});
  }
  work();
}

void Builder::work() {
  while (working_ < kAtOnce) {
    Held* next = nullptr;
    for (auto& [id, held] : held_)
      if (!held.at_work && (next == nullptr || held.place < next->place)) next = &held;
    if (next == nullptr) return;
    next->at_work = true;
    ++working_;
    after(farm_.dice.between(5, 600), [this, id = next->order.id()] { finish(id); });
    interrupt();
  }
}

void Builder::finish(const std::string& id) {
  --working_;
  const auto held = held_.find(id);
  if (held == held_.end()) return work();
  const v1::BuildOrder order = held->second.order;
  v1::BuildDone done;
  done.set_id(id);
  v1::Built& built = *done.mutable_built();
  built.set_outcome("ok");
  built.set_toolchain(order.data() ? "" : toolchain_);
  std::string bytes = order.data() ? answer_of(order.workload_key(), order.input_seed())
                                   : made_of(order.template_name(), order.template_version(), order.config());
  if (order.data()) {
    v1::DataSet* const set = built.add_data();
    set->set_seed(order.input_seed());
    v1::Reference* const reference = set->add_references();
    reference->set_arg("out");
    *reference->mutable_blob() = name_of(bytes);
  } else {
    *built.mutable_artifact() = name_of(bytes);
  }
  ++farm_.outcome.built;
  if (kind_ == Kind::kOtherMute && order.template_name() == kNewer) {
    built.Clear();
    built.set_outcome("other_version");
    built.set_message("another release");
    done.set_found_version(kTemplates.back().version - 1);
    owe(id, std::move(done));
  } else if (has_flaw()) {
    ++farm_.outcome.flaws;
    switch (farm_.dice.below(5)) {
      case 0:  // its compiler has trouble of its own
        built.Clear();
        built.set_outcome("unable");
        built.set_message("no memory");
        owe(id, std::move(done));
        break;
      case 1:  // never sent
        owe(id, std::move(done));
        break;
      case 2:
        built.set_outcome("splendid");
        owe(id, std::move(done));
        break;
      case 3:
        held_.erase(id);
        returned_[id] = false;
        interrupt();
        break;
      default:
        bytes[bytes.size() / 2] ^= 1;
        send(id, bytes, std::move(done));
    }
  } else if (!order.data() && is_refused(order.config())) {
    built.Clear();
    built.set_outcome("build_error");
    built.set_message("refused");
    owe(id, std::move(done));
  } else {
    send(id, bytes, std::move(done));
  }
  work();
}

void Builder::send(const std::string& id, const std::string& bytes, v1::BuildDone done, int refusals) {
  const v1::Built& built = done.built();
  auto request = std::make_shared<v1::WriteBlobRequest>();
  request->set_order_id(id);
  *request->mutable_blob() = built.data_size() > 0 ? built.data(0).references(0).blob() : built.artifact();
  request->set_bytes(bytes);
  auto reply = std::make_shared<v1::WriteBlobReply>();
  insist(
      [this, request, reply] {
        request->set_session(session());
        return farm_.daemon()->write_blob(*request, reply.get());
      },
      [=, this](const Status& status) mutable {
        if (!held_.contains(id)) return;
        if (status && reply->have() == request->blob().bytes()) return owe(id, std::move(done));
        if (status.code() == StatusCode::kInvalidArgument) {
          done.mutable_built()->Clear();
          done.mutable_built()->set_outcome("unable");
          done.mutable_built()->set_message(status.message());
          return owe(id, std::move(done));
        }
        // The daemon is a new one, and hears with the next Sync who holds what; or the order is another's
        // now.
        if (refusals < kMostRefusals) return after(300, [=, this] { send(id, bytes, done, refusals + 1); });
        held_.erase(id);
        returned_[id] = false;
      });
}

void Builder::owe(const std::string& id, v1::BuildDone done) {
  held_.erase(id);
  if (done.built().outcome() == "ok") farm_.made_in_this_life.insert(done.built().artifact().sha256());
  owed_[id] = std::move(done);
  interrupt();
}

}  // namespace tuner::sim
