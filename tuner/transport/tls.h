// TLS on the server's side of a gate: version 1.3, HTTP/2 (ALPN h2), a certificate of the client if it has
// one. OpenSSL stays behind this header.
//
// The gate moves the bytes; a TlsConnection turns those of the client into plain ones and back. It has no
// socket and no clock, and is used from one thread. A client's certificate is checked against our authority,
// but a bad one does not end the handshake: the fault is noted in Peer, so that whoever answers the calls can
// say in words what is wrong. (In TLS 1.3 a client whose certificate is refused has already finished its own
// handshake, and learns no more than that the connection has closed.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/transport/peer.h"

namespace tuner::transport {

// PEM texts. The certificate is the server's own, the authority the one that signs clients' certificates.
struct TlsMaterial {
  std::string certificate, key, authority;
};

class TlsConnection {
 public:
  virtual ~TlsConnection() = default;

  // Encrypted bytes as they are read in one go. With what is left of the record before, they become at most
  // kMostPlain plain ones.
  static constexpr size_t kMostCipher = 44 << 10, kMostPlain = 64 << 10;
  // Plain bytes for one call of send().
  static constexpr size_t kMostSend = 32 << 10;

  // Takes bytes of the client, and writes what they say to `plain`, which has room for kMostPlain. Returns
  // how many that are. After a failure, fault() says why: the connection is to be closed once output has been
  // sent.
  virtual size_t receive(std::span<const uint8_t> cipher, uint8_t* plain) = 0;
  // Encrypts for the client. Only after the handshake.
  virtual void send(std::span<const uint8_t> plain) = 0;
  // Says to the client that nothing follows. Twice is fine.
  virtual void close() = 0;

  // Encrypted bytes that wait for the client: take them after each call above.
  virtual size_t output_bytes() const = 0;
  virtual size_t take_output(uint8_t* to, size_t most) = 0;

  virtual bool is_open() const = 0;              // the handshake is done
  virtual bool has_ended() const = 0;            // the client has said that nothing follows
  virtual const std::string& fault() const = 0;  // empty: all is well
  virtual const Peer& peer() const = 0;          // after the handshake
};

class TlsServer {
 public:
  // InvalidArgument: a text is not PEM, or key and certificate do not belong together.
  static Result<std::unique_ptr<TlsServer>> create(const TlsMaterial& material);
  virtual ~TlsServer() = default;
  // From now on for new connections; those that are open go on. Any thread.
  virtual Status renew(const TlsMaterial& material) = 0;
  virtual std::unique_ptr<TlsConnection> accept() = 0;
};

}  // namespace tuner::transport
