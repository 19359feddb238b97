#include "tuner/transport/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <mutex>
#include <utility>

#include "tuner/transport/tls_context.h"

namespace tuner::transport {
namespace {

struct FreeConnection {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// A client may ask for new keys this often, and once more for so many bytes it sends: each costs far more to
// answer than to ask. Those of gRPC never do.
constexpr uint64_t kKeyUpdates = 32, kBytesOfKey = 1 << 20;

class Connection final : public TlsConnection {
 public:
  explicit Connection(SSL_CTX* context) : ssl_(SSL_new(context)) {
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    CHECK(ssl_ != nullptr && in_ != nullptr && out_ != nullptr) << "OpenSSL has no memory for a connection";
    BIO_set_mem_eof_return(in_, -1);     // empty means "later"
    SSL_set_bio(ssl_.get(), in_, out_);  // which owns both now
    note_certificate_fault(ssl_.get(), fault_of_certificate_);
    SSL_set_accept_state(ssl_.get());
    SSL_clear_mode(ssl_.get(), SSL_MODE_AUTO_RETRY);  // receive() looks at each message
    SSL_set_msg_callback(ssl_.get(), note_message);
    SSL_set_msg_callback_arg(ssl_.get(), this);
  }

  size_t receive(std::span<const uint8_t> cipher, uint8_t* plain) override {
    if (!fault_.empty() || has_ended_) return 0;
    ERR_clear_error();
    if (BIO_write(in_, cipher.data(), static_cast<int>(cipher.size())) != static_cast<int>(cipher.size())) {
      fault_ = "OpenSSL has no memory";
      return 0;
    }
    if (!open_ && !shake_hands()) return 0;
    size_t got = 0;
    while (got < kMostPlain) {
      const size_t left = BIO_ctrl_pending(in_);
      const uint64_t messages = key_updates_;
      size_t count = 0;
      if (SSL_read_ex(ssl_.get(), plain + got, kMostPlain - got, &count) == 1) {
        got += count;
        continue;
      }
      note(0);
      // Where bytes were taken, or a message that is no data, more may follow.
      const bool moved = BIO_ctrl_pending(in_) != left || key_updates_ != messages;
      if (!fault_.empty() || has_ended_ || !moved) break;
    }
    plain_bytes_ += got;
    return got;
  }

  void send(std::span<const uint8_t> plain) override {
    if (!open_ || plain.empty() || !fault_.empty()) return;
    ERR_clear_error();
    size_t count = 0;
    if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &count) != 1 || count != plain.size())
      fault_ = "cannot be encrypted: " + openssl_error();
  }

  void close() override {
    if (!open_ || closed_ || !fault_.empty()) return;
    closed_ = true;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }

  size_t output_bytes() const override { return BIO_ctrl_pending(out_); }
  size_t take_output(uint8_t* to, size_t most) override {
    const int count = BIO_read(out_, to, static_cast<int>(most));
    return count > 0 ? static_cast<size_t>(count) : 0;
  }
  bool is_open() const override { return open_; }
  bool has_ended() const override { return has_ended_; }
  const std::string& fault() const override { return fault_; }
  const Peer& peer() const override { return peer_; }

 private:
  // True once it is done.
  bool shake_hands() {
    const int done = SSL_do_handshake(ssl_.get());
    if (done != 1) {
      note(done);
      return false;
    }
    open_ = true;
    peer_ = peer_of(ssl_.get(), fault_of_certificate_);
    return true;
  }

  static void note_message(int written, int, int content, const void* bytes, size_t size, SSL*, void* self) {
    if (written == 0 && content == SSL3_RT_HANDSHAKE && size > 0 &&
        *static_cast<const unsigned char*>(bytes) == SSL3_MT_KEY_UPDATE)
      ++static_cast<Connection*>(self)->key_updates_;
  }

  // What a call that did not succeed means; `returned` is what it returned.
  void note(int returned) {
    switch (SSL_get_error(ssl_.get(), returned)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        if (key_updates_ > kKeyUpdates + plain_bytes_ / kBytesOfKey)
          fault_ = "new keys are asked for too often";
        return;
      case SSL_ERROR_ZERO_RETURN:
        has_ended_ = true;
        return;
      default:
        fault_ = openssl_error();
    }
  }

  std::unique_ptr<SSL, FreeConnection> ssl_;
  BIO* in_ = nullptr;   // ssl_'s
  BIO* out_ = nullptr;  // ssl_'s
  bool open_ = false, closed_ = false, has_ended_ = false;
  uint64_t plain_bytes_ = 0, key_updates_ = 0;  // received
  std::string fault_;
  std::string fault_of_certificate_;
  Peer peer_;
};

class Server final : public TlsServer {
 public:
  explicit Server(TlsContext context) : context_(std::move(context)) {}
  Status renew(const TlsMaterial& material) override {
    ASSIGN_OR_RETURN(TlsContext context, make_tls_context(material, "h2"));
    const std::lock_guard lock(mutex_);
    context_ = std::move(context);  // open connections hold the former one
    return Status::ok();
  }
  std::unique_ptr<TlsConnection> accept() override {
    const std::lock_guard lock(mutex_);
    return std::make_unique<Connection>(context_.get());
  }

 private:
  std::mutex mutex_;
  TlsContext context_;
};

}  // namespace

Result<std::unique_ptr<TlsServer>> TlsServer::create(const TlsMaterial& material) {
  ASSIGN_OR_RETURN(TlsContext context, make_tls_context(material, "h2"));
  return std::unique_ptr<TlsServer>(std::make_unique<Server>(std::move(context)));
}

}  // namespace tuner::transport
