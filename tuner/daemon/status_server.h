// StatusServer: the status pages on a socket, for Prometheus, for Kubernetes, and for whoever asks whether
// the daemon lives.
//
// 16 connections, two seconds each, 8 KiB of request: a scraper needs no more, and nobody gets more. It is
// apart from the gate and gRPC on purpose: it tells when those do not answer.
#pragma once

#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/daemon/status_page.h"

namespace tuner {

class StatusServer {
 public:
  // `address`: one that check_pages_address() allows; port 0 takes a free one. By TLS it shows the
  // certificate of the daemon in the folder `identity`, follows that folder, and asks it who may see what:
  // `pages.refusal` is not asked. `warns`: it logs when that certificate ends; else somebody else does.
  // NotFound: TLS, and no identity.
  static Result<std::unique_ptr<StatusServer>> start(const std::string& address, StatusPages pages,
                                                     const std::string& identity = "", bool warns = true);
  virtual ~StatusServer() = default;  // stops
  virtual const std::string& address() const = 0;
};

}  // namespace tuner
