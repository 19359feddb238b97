// What the two servers of a daemon, the gate's and that of its pages, share of TLS: a context of OpenSSL, and
// who a client is. OpenSSL's own types, so only tls.cpp and tuner/http read this.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "tuner/transport/peer.h"
#include "tuner/transport/tls.h"

namespace tuner::transport {

struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTlsContext>;

// Version 1.3, no sessions that are resumed, any certificate of a client (its faults are noted). `protocol`
// is the only one that is spoken (ALPN: "h2", "http/1.1"): a client that offers others is refused, one that
// offers none is taken. It is a literal. InvalidArgument: as TlsServer::create().
Result<TlsContext> make_tls_context(const TlsMaterial& material, const char* protocol);

// Before the handshake: where the first fault of the client's certificate is noted. `fault` outlives `ssl`.
void note_certificate_fault(SSL* ssl, std::string& fault);
// After the handshake: who is there.
Peer peer_of(SSL* ssl, const std::string& fault);

// The oldest error in OpenSSL's queue of this thread, which is emptied.
std::string openssl_error();

}  // namespace tuner::transport
