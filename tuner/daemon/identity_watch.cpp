#include "tuner/daemon/identity_watch.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <ctime>

#include "tuner/identity/certificates.h"
#include "tuner/identity/register.h"

namespace tuner {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr int kLooksOfADay = 24 * 3600;
constexpr int64_t kMonthS = int64_t{30} * 24 * 3600;
constexpr char kRenew[] =
    "`tuner admin ca --renew` makes a new one, which a running daemon takes up by itself";

}  // namespace

CertificateNote note_of_certificate(int64_t until_s, int64_t now_s) {
  if (now_s >= until_s)
    return {true, str("the daemon's certificate ended ", identity::date_text(until_s),
                      ": nobody gets in by TLS. ", kRenew)};
  if (until_s - now_s > kMonthS) return {};
  return {false, str("the daemon's certificate ends ", identity::date_text(until_s),
                     ": then nobody gets in by TLS. ", kRenew)};
}

IdentityWatch::IdentityWatch(identity::Gatekeeper& gatekeeper, bool warns)
    : gatekeeper_(gatekeeper), warns_(warns), thread_([this] { watch(); }) {}

IdentityWatch::~IdentityWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

// A folder that cannot be read is the gatekeeper's to tell.
void IdentityWatch::tell_of_certificate() const {
  const Result<identity::KeyAndCertificate> daemon = gatekeeper_.daemon_certificate();
  if (!daemon) return;
  const Result<int64_t> until_s = identity::end_of_certificate(daemon->certificate);
  if (!until_s) return;
  const CertificateNote note = note_of_certificate(*until_s, std::time(nullptr));
  if (!note.text.empty())
    spdlog::log(note.ended ? spdlog::level::err : spdlog::level::warn, "identity: {}", note.text);
}

void IdentityWatch::watch() {
  int looks = 0;
  while (true) {
    if (warns_ && looks++ % kLooksOfADay == 0) tell_of_certificate();
    gatekeeper_.look();
    std::unique_lock lock(mutex_);
    if (stop_.wait_for(lock, kLookEvery, [&] { return stopping_; })) return;
  }
}

}  // namespace tuner
