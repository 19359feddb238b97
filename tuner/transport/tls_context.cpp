#include "tuner/transport/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>

namespace tuner::transport {
namespace {

struct Free {
  void operator()(BIO* p) const { BIO_free_all(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

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

// `protocol`: a const char*, the only one that is spoken.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void* protocol) {
  const std::string_view name = static_cast<const char*>(protocol);
  const std::string spoken = static_cast<char>(name.size()) + std::string(name);
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, size, reinterpret_cast<const unsigned char*>(spoken.data()),
                            static_cast<unsigned>(spoken.size()), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = reinterpret_cast<const unsigned char*>(name.data());  // of the literal: `spoken` ends here
  return SSL_TLSEXT_ERR_OK;
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

}  // namespace

std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "no reason given" : text;
}

Result<TlsContext> make_tls_context(const TlsMaterial& material, const char* protocol) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return failed("TLS: ", openssl_error());
  SSL_CTX* const c = context.get();
  SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
  // No tickets: a session that is resumed would keep a certificate that has been judged long ago.
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);  // an idle connection holds 34 KB less
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, const_cast<char*>(protocol));
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, note_fault);
  SSL_CTX_set_verify_depth(c, 2);

  const Owned<BIO> certificate_text = reader_of(material.certificate), key_text = reader_of(material.key),
                   authority_text = reader_of(material.authority);
  const Owned<X509> certificate(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr || SSL_CTX_use_certificate(c, certificate.get()) != 1)
    return invalid_argument("the daemon's certificate: expected PEM, found something else: ",
                            openssl_error());
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(c, key.get()) != 1 || SSL_CTX_check_private_key(c) != 1)
    return invalid_argument("the daemon's key: expected PEM that belongs to its certificate: ",
                            openssl_error());
  const Owned<X509> authority(PEM_read_bio_X509(authority_text.get(), nullptr, nullptr, nullptr));
  if (authority == nullptr || X509_STORE_add_cert(SSL_CTX_get_cert_store(c), authority.get()) != 1 ||
      SSL_CTX_add_client_CA(c, authority.get()) != 1)
    return invalid_argument("the authority's certificate: expected PEM, found something else: ",
                            openssl_error());
  if (X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) != 1) {
    ERR_clear_error();
    return invalid_argument(
        "the daemon's certificate: expected one that the farm's authority has signed, found another: "
        "no client would believe it. `tuner admin ca --renew` makes a new one");
  }
  return {std::move(context)};
}

void note_certificate_fault(SSL* ssl, std::string& fault) { SSL_set_ex_data(ssl, fault_index(), &fault); }

Peer peer_of(SSL* ssl, const std::string& fault) {
  Peer peer{.way = Peer::Way::kTls};
  const Owned<X509> certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr) return peer;
  peer.certificate = uri_of(certificate.get());
  peer.serial = serial_of(certificate.get());
  peer.not_after_s = end_of(certificate.get());
  peer.certificate_fault = fault;
  if (fault.empty() && SSL_get_verify_result(ssl) != X509_V_OK)
    peer.certificate_fault = X509_verify_cert_error_string(SSL_get_verify_result(ssl));
  return peer;
}

}  // namespace tuner::transport
