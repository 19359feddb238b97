#include "tuner/transport/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <mutex>
#include <string_view>
#include <utility>

namespace tuner::transport {
namespace {

struct Free {
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// A client may ask for new keys this often, and once more for so many bytes it sends: each costs far more to
// answer than to ask. Those of gRPC never do.
constexpr uint64_t kKeyUpdates = 32, kBytesOfKey = 1 << 20;

// The oldest error in OpenSSL's queue of this thread, which is emptied.
std::string last_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "no reason given" : text;
}

Owned<BIO> reader_of(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Where a connection notes what is wrong with the client's certificate.
int fault_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Lets every certificate through, and notes the first fault.
int note_fault(int good, X509_STORE_CTX* store) {
  if (good == 1) return 1;
  auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* const fault = static_cast<std::string*>(SSL_get_ex_data(ssl, fault_index()));
  if (fault->empty()) *fault = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  return 1;
}

int choose_http2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                 unsigned int offered_size, void*) {
  static constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, size, kHttp2.data(), kHttp2.size(), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<Owned<SSL_CTX>> make_context(const TlsMaterial& material) {
  ERR_clear_error();
  Owned<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return failed("TLS: ", last_error());
  SSL_CTX* const c = context.get();
  SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
  // No tickets: a session that is resumed would keep a certificate that has been judged long ago.
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);  // an idle connection holds 34 KB less
  SSL_CTX_set_alpn_select_cb(c, choose_http2, nullptr);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, note_fault);
  SSL_CTX_set_verify_depth(c, 2);

  const Owned<BIO> certificate_text = reader_of(material.certificate), key_text = reader_of(material.key),
                   authority_text = reader_of(material.authority);
  const Owned<X509> certificate(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr || SSL_CTX_use_certificate(c, certificate.get()) != 1)
    return invalid_argument("the daemon's certificate: expected PEM, found something else: ", last_error());
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(c, key.get()) != 1 || SSL_CTX_check_private_key(c) != 1)
    return invalid_argument("the daemon's key: expected PEM that belongs to its certificate: ", last_error());
  const Owned<X509> authority(PEM_read_bio_X509(authority_text.get(), nullptr, nullptr, nullptr));
  if (authority == nullptr || X509_STORE_add_cert(SSL_CTX_get_cert_store(c), authority.get()) != 1 ||
      SSL_CTX_add_client_CA(c, authority.get()) != 1)
    return invalid_argument("the authority's certificate: expected PEM, found something else: ",
                            last_error());
  if (X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) != 1) {
    ERR_clear_error();
    return invalid_argument(
        "the daemon's certificate: expected one that the farm's authority has signed, found another: "
        "no client would believe it. `tuner admin ca --renew` makes a new one");
  }
  return context;
}

std::string uri_of(X509* certificate) {
  const Owned<GENERAL_NAMES> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
            static_cast<size_t>(ASN1_STRING_length(uri))};
  }
  return "";
}

std::string serial_of(X509* certificate) {
  const Owned<BIGNUM> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (number == nullptr) return "";
  char* const text = BN_bn2hex(number.get());
  std::string serial = text == nullptr ? "" : text;
  OPENSSL_free(text);
  return serial;
}

int64_t end_of(X509* certificate) {
  std::tm end{};
  return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1 ? timegm(&end) : 0;
}

class Connection final : public TlsConnection {
 public:
  explicit Connection(SSL_CTX* context) : ssl_(SSL_new(context)) {
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    CHECK(ssl_ != nullptr && in_ != nullptr && out_ != nullptr) << "OpenSSL has no memory for a connection";
    BIO_set_mem_eof_return(in_, -1);     // empty means "later"
    SSL_set_bio(ssl_.get(), in_, out_);  // which owns both now
    SSL_set_ex_data(ssl_.get(), fault_index(), &peer_.certificate_fault);
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
      fault_ = "cannot be encrypted: " + last_error();
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
    peer_.way = Peer::Way::kTls;
    const Owned<X509> certificate(SSL_get1_peer_certificate(ssl_.get()));
    if (certificate == nullptr) return true;
    peer_.certificate = uri_of(certificate.get());
    peer_.serial = serial_of(certificate.get());
    peer_.not_after_s = end_of(certificate.get());
    if (peer_.certificate_fault.empty() && SSL_get_verify_result(ssl_.get()) != X509_V_OK)
      peer_.certificate_fault = X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get()));
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
        fault_ = last_error();
    }
  }

  Owned<SSL> ssl_;
  BIO* in_ = nullptr;   // ssl_'s
  BIO* out_ = nullptr;  // ssl_'s
  bool open_ = false, closed_ = false, has_ended_ = false;
  uint64_t plain_bytes_ = 0, key_updates_ = 0;  // received
  std::string fault_;
  Peer peer_;
};

class Server final : public TlsServer {
 public:
  explicit Server(Owned<SSL_CTX> context) : context_(std::move(context)) {}
  Status renew(const TlsMaterial& material) override {
    ASSIGN_OR_RETURN(Owned<SSL_CTX> context, make_context(material));
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
  Owned<SSL_CTX> context_;
};

}  // namespace

Result<std::unique_ptr<TlsServer>> TlsServer::create(const TlsMaterial& material) {
  ASSIGN_OR_RETURN(Owned<SSL_CTX> context, make_context(material));
  return std::unique_ptr<TlsServer>(std::make_unique<Server>(std::move(context)));
}

}  // namespace tuner::transport
