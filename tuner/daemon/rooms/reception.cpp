#include "tuner/daemon/rooms/reception.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <utility>

#include "proto/convert.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/messages.h"
#include "tuner/daemon/edge/releases.h"

namespace tuner {

std::string random_session() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) {
    char word[9];
    std::snprintf(word, sizeof word, "%08x", random());
    text += word;
  }
  return text;
}

Status Reception::register_worker(const v1::RegisterRequest& request, v1::RegisterReply* reply,
                                  Workers::Registrar registrar) {
  ASSIGN_OR_RETURN(Workers::Offer offer, from_proto(request));
  offer.registrar = std::move(registrar);
  RETURN_IF_ERROR(of_.builds.check_kind(offer.kind));
  const std::string host = offer.host, impossible = offer.impossible;
  std::vector<LeaseTable::Loss> losses;
  std::vector<Lack> lacks;
  {
    const Locked farm(of_.farm);
    if (farm->stopping) return farm->stopped();
    const std::string session = of_.options.make_session();
    ASSIGN_OR_RETURN(const std::vector<WorkerLife> ended,
                     farm->workers.enter(session, std::move(offer), of_.clock.now_ms()));
    for (const WorkerLife& life : ended) {
      for (LeaseTable::Loss& loss : farm->leases.worker_lost(life)) losses.push_back(std::move(loss));
      farm->builds.builder_lost(life, of_.clock.now_ms());
    }
    lacks = farm->workers.lacks(session);
    reply->set_session(session);
    reply->set_lease_ttl_ms(of_.options.leases.ttl_ms);
  }
  of_.metrics.lost(LostWhy::kWorkerLost, losses.size());
  wake_desk_();  // its older Syncs do not speak for it any more
  const LogAbout about({.worker = request.worker_id()});
  spdlog::info("worker {} is here, from {}", request.worker_id(), host);
  if (!impossible.empty()) spdlog::warn("worker {} gets nothing: {}", request.worker_id(), shown(impossible));
  if (!lacks.empty()) spdlog::warn("{}", lacks_line(request.worker_id(), lacks));
  of_.losses.handle(losses);
  return Status::ok();
}

Status Reception::drain(const v1::DrainRequest& request, v1::DrainReply* reply) {
  {
    const Locked farm(of_.farm);
    const WorkerLife* const life = farm->workers.drain(request.worker_id());
    if (life == nullptr)
      return not_found("worker ", shown(request.worker_id()),
                       " is not here; `tuner workers` lists those that are");
    reply->set_leases(static_cast<int>(farm->leases.leases_of(*life)));
  }
  spdlog::info("worker {} drains", shown(request.worker_id()));
  wake_desk_();
  return Status::ok();
}

}  // namespace tuner
