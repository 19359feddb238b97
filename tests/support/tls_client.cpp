#include "tests/support/tls_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/wait_until.h"

namespace tuner::testing {
namespace {

constexpr int kLimitMs = 10'000;
constexpr size_t kKept = 1 << 20;

int connect_tcp(const std::string& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  const size_t colon = address.rfind(':');
  name.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
std::unique_ptr<BIO, FreeBio> reader_of(const std::string& text) {
  return std::unique_ptr<BIO, FreeBio>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace

struct TlsClient::Tls {
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
  BIO *in = nullptr, *out = nullptr;  // ssl's
  ~Tls() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
};

TlsClient::TlsClient(const std::string& address, Options options)
    : options_(std::move(options)),
      fd_(connect_tcp(address)),
      closed_(fd_ < 0),
      tls_(std::make_unique<Tls>()) {
  tls_->context = SSL_CTX_new(TLS_client_method());
  if (options_.only_tls12) SSL_CTX_set_max_proto_version(tls_->context, TLS1_2_VERSION);
  if (!options_.certificate.empty()) {
    X509* const certificate =
        PEM_read_bio_X509(reader_of(options_.certificate).get(), nullptr, nullptr, nullptr);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(reader_of(options_.key).get(), nullptr, nullptr, nullptr);
    if (SSL_CTX_use_certificate(tls_->context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(tls_->context, key) != 1)
      fault_ = "the test's own certificate cannot be used";
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  tls_->ssl = SSL_new(tls_->context);
  tls_->in = BIO_new(BIO_s_mem());
  tls_->out = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(tls_->in, -1);
  SSL_set_bio(tls_->ssl, tls_->in, tls_->out);
  if (!options_.protocol.empty()) {
    const std::string list = static_cast<char>(options_.protocol.size()) + options_.protocol;
    SSL_set_alpn_protos(tls_->ssl, reinterpret_cast<const unsigned char*>(list.data()),
                        static_cast<unsigned>(list.size()));
  }
  SSL_set_connect_state(tls_->ssl);
}

TlsClient::~TlsClient() {
  if (fd_ >= 0) close(fd_);
}

bool TlsClient::wait(short events, int limit_ms) const {
  pollfd entry{fd_, events, 0};
  return poll(&entry, 1, limit_ms) > 0;
}

// Reads what there is into OpenSSL.
void TlsClient::read_some() {
  std::vector<char> buffer(64 << 10);
  while (!closed_ && reading_) {
    const ssize_t count = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (count <= 0)
      closed_ = true;
    else
      BIO_write(tls_->in, buffer.data(), static_cast<int>(count));
  }
}

// Sends what OpenSSL wants to send.
bool TlsClient::flush() {
  std::vector<char> piece(options_.bytes_at_once);
  while (BIO_ctrl_pending(tls_->out) > 0) {
    const int size = BIO_read(tls_->out, piece.data(), static_cast<int>(piece.size()));
    if (options_.damage_at >= sent_ && options_.damage_at < sent_ + size)
      piece[static_cast<size_t>(options_.damage_at - sent_)] ^= 0x41;
    sent_ += size;
    for (int sent = 0; sent < size;) {
      if (closed_) return false;
      const ssize_t count =
          ::send(fd_, piece.data() + sent, static_cast<size_t>(size - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0) {
        sent += static_cast<int>(count);
      } else if (errno != EAGAIN && errno != EINTR) {
        read_some();  // the server's last words
        closed_ = true;
      } else {
        if (!wait(reading_ ? POLLIN | POLLOUT : POLLOUT, kLimitMs)) return false;
        read_some();
      }
    }
    if (options_.pause.count() > 0) let_pass(options_.pause);
  }
  return !closed_;
}

// True: OpenSSL only wants more bytes.
bool TlsClient::note(int returned) {
  switch (SSL_get_error(tls_->ssl, returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return true;
    case SSL_ERROR_ZERO_RETURN:
      ended_ = true;
      return false;
    default:
      const char* const text = ERR_reason_error_string(ERR_get_error());
      ERR_clear_error();
      if (fault_.empty()) fault_ = text == nullptr ? "no reason given" : text;
      return false;
  }
}

bool TlsClient::shake_hands() {
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(tls_->ssl);
    if (done == 1) return flush();
    if (!note(done)) {
      flush();
      return false;
    }
    const bool was_closed = closed_;
    flush();
    if (was_closed || !fault_.empty()) return false;
    if (BIO_ctrl_pending(tls_->in) == 0 && !closed_ && !wait(POLLIN, kLimitMs)) return false;
    read_some();
  }
}

void TlsClient::take_plain() {
  std::vector<char> buffer(64 << 10);
  size_t count = 0;
  ERR_clear_error();
  while (!ended_ && fault_.empty()) {
    if (SSL_read_ex(tls_->ssl, buffer.data(), buffer.size(), &count) != 1) {
      note(0);
      return;
    }
    received_.append(buffer.data(), std::min(count, kKept - std::min(kKept, received_.size())));
  }
}

bool TlsClient::send(std::string_view bytes) {
  if (is_closed()) return false;
  size_t count = 0;
  ERR_clear_error();
  if (SSL_write_ex(tls_->ssl, bytes.data(), bytes.size(), &count) != 1) {
    note(0);
    return false;
  }
  return flush();
}

bool TlsClient::ask_for_keys(int count) {
  if (is_closed()) return false;
  for (int i = 0; i < count; ++i) {
    ERR_clear_error();
    if (SSL_key_update(tls_->ssl, SSL_KEY_UPDATE_REQUESTED) != 1 || SSL_do_handshake(tls_->ssl) != 1) {
      note(0);
      return false;
    }
  }
  return flush();
}

bool TlsClient::end() {
  SSL_shutdown(tls_->ssl);
  return flush();
}

bool TlsClient::is_closed() {
  if (reading_) {
    read_some();
    if (SSL_is_init_finished(tls_->ssl)) take_plain();
  }
  return closed_;
}

bool TlsClient::closes_within(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!is_closed()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    wait(POLLIN, static_cast<int>(std::min<int64_t>(left.count(), 100)));
  }
  return true;
}

bool TlsClient::receives(std::string_view text, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (received_.find(text) == std::string::npos) {
    if (is_closed() && received_.find(text) == std::string::npos) return false;
    if (std::chrono::steady_clock::now() > end) return false;
    wait(POLLIN, 50);
  }
  return true;
}

std::string TlsClient::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(tls_->ssl, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsClient::server_serial() const {
  X509* const certificate = SSL_get1_peer_certificate(tls_->ssl);
  if (certificate == nullptr) return "";
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* const digits = BN_bn2hex(number);
  std::string serial = digits;
  OPENSSL_free(digits);
  BN_free(number);
  X509_free(certificate);
  return serial;
}

}  // namespace tuner::testing
