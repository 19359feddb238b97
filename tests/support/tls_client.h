// A raw TLS client for tests: a socket to "127.0.0.1:PORT", OpenSSL behind this header. It believes any
// server; what it shows and how slowly it sends is up to the test.
//
//   TlsClient client(address, {.certificate = pem, .key = pem});
//   ASSERT_TRUE(client.shake_hands()) << client.fault();
//   client.send(http2::preface() + http2::settings());
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tuner::testing {

class TlsClient {
 public:
  struct Options {
    std::string certificate, key;  // PEM; empty: none is shown
    std::string protocol = "h2";   // ALPN; empty: none is offered
    bool only_tls12 = false;
    size_t bytes_at_once = 64 << 10;     // of what is encrypted
    int64_t damage_at = -1;              // of what is encrypted, the byte that arrives changed; -1: none
    std::chrono::milliseconds pause{0};  // after each piece
  };
  TlsClient(const std::string& address, Options options);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // True once it is done. False: the server closed, or nothing came for ten seconds.
  bool shake_hands();
  // Encrypts and sends all of it, reading away what comes meanwhile. False: the server has closed the
  // connection, or takes nothing for ten seconds.
  bool send(std::string_view bytes);
  // Asks for new keys `count` times at once. The same.
  bool ask_for_keys(int count);
  // Says that nothing follows (close_notify); the socket stays open.
  bool end();
  // Does not read from now on.
  void stop_reading() { reading_ = false; }

  // Reads away what there is. True once the server has closed the connection.
  bool is_closed();
  bool closes_within(std::chrono::milliseconds limit);
  // Waits until it was received; false after the limit.
  bool receives(std::string_view text, std::chrono::milliseconds limit);
  int64_t sent_bytes() const { return sent_; }               // encrypted
  const std::string& received() const { return received_; }  // at most its first MiB
  bool has_ended() const { return ended_; }                  // the server has said that nothing follows
  const std::string& fault() const { return fault_; }        // what OpenSSL says; empty: nothing
  std::string protocol() const;                              // that the server chose
  std::string server_serial() const;                         // of its certificate

 private:
  struct Tls;
  bool flush();
  void read_some();
  bool wait(short events, int limit_ms) const;
  void take_plain();
  bool note(int returned);

  const Options options_;
  int fd_ = -1;
  int64_t sent_ = 0;
  bool closed_ = false, ended_ = false, reading_ = true;
  std::string fault_, received_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace tuner::testing
