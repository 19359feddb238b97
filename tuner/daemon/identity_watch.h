// IdentityWatch: keeps a daemon that listens with TLS up to date with its identity folder, whether anybody
// calls or not.
//
// The gatekeeper reads changed files when a call comes. After the daemon's certificate has ended no call
// comes: nobody gets through the handshake. So somebody has to look by himself, or `tuner admin ca --renew`
// would wait for a restart.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "tuner/identity/gatekeeper.h"

namespace tuner {

// What is to be said of a certificate that ends then: nothing as long as it is good for a month.
struct CertificateNote {
  bool ended = false;
  std::string text;  // one line for people; empty: nothing
};
CertificateNote note_of_certificate(int64_t until_s, int64_t now_s);

class IdentityWatch {
 public:
  // Looks once a second, from a thread of its own, until this is destroyed. Logs a line at its start and then
  // once a day while the daemon's certificate ends within a month or has ended, unless another watch of that
  // folder does (`warns`). `gatekeeper` outlives this.
  explicit IdentityWatch(identity::Gatekeeper& gatekeeper, bool warns = true);
  ~IdentityWatch();
  IdentityWatch(const IdentityWatch&) = delete;
  IdentityWatch& operator=(const IdentityWatch&) = delete;

 private:
  void watch();
  void tell_of_certificate() const;

  identity::Gatekeeper& gatekeeper_;
  const bool warns_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tuner
