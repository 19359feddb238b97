#include "tuner/identity/certificates.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "proto/daemon_access.h"

namespace tuner::identity {
namespace {

struct Free {
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

constexpr int64_t kDay_s = 86'400;
// A clock that goes wrong by an hour does not make a new certificate one of the future.
constexpr int64_t kBackdated_s = 3'600;
constexpr int kSerialBits = 127;  // positive, and at most 20 octets

Status broken(const char* what) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return failed(what, ": ", reason == nullptr ? "OpenSSL gives no reason" : reason);
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Result<Owned<X509>> read_certificate(const std::string& pem) {
  const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<X509> certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return broken("a certificate cannot be read");
  return certificate;
}

Result<Owned<EVP_PKEY>> read_key(const std::string& pem) {
  const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return broken("a private key cannot be read");
  return key;
}

int64_t seconds_of(const ASN1_TIME* time) {
  std::tm t{};
  return ASN1_TIME_to_tm(time, &t) == 1 ? timegm(&t) : 0;
}

// A certificate on its way: what all have in common.
class Draft {
 public:
  static Result<Draft> begin(const std::string& name, int days) {
    Draft d;
    d.key_.reset(EVP_EC_gen("P-256"));
    d.certificate_.reset(X509_new());
    const Owned<BIGNUM> serial(BN_new());
    if (d.key_ == nullptr || d.certificate_ == nullptr || serial == nullptr ||
        BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1)
      return broken("a key cannot be made");
    X509* const x = d.certificate_.get();
    X509_set_version(x, X509_VERSION_3);
    BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(x));
    char* const digits = BN_bn2hex(serial.get());
    d.serial_ = digits;
    OPENSSL_free(digits);
    X509_gmtime_adj(X509_getm_notBefore(x), -kBackdated_s);
    X509_gmtime_adj(X509_getm_notAfter(x), days * kDay_s);
    X509_set_pubkey(x, d.key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    return d;
  }

  // `issuer` null: itself.
  Status extend(X509* issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer == nullptr ? certificate_.get() : issuer, certificate_.get(), nullptr,
                   nullptr, 0);
    const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    if (extension == nullptr || X509_add_ext(certificate_.get(), extension.get(), -1) != 1)
      return broken("an extension of a certificate cannot be made");
    return Status::ok();
  }

  Result<Issued> sign(X509* issuer, EVP_PKEY* issuer_key) {
    X509* const x = certificate_.get();
    X509_set_issuer_name(x, X509_get_subject_name(issuer == nullptr ? x : issuer));
    if (X509_sign(x, issuer_key == nullptr ? key_.get() : issuer_key, EVP_sha256()) == 0)
      return broken("a certificate cannot be signed");
    const Owned<BIO> key(BIO_new(BIO_s_mem())), certificate(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_PrivateKey(key.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
        PEM_write_bio_X509(certificate.get(), x) != 1)
      return broken("a certificate cannot be written");
    return Issued{
        {text_of(key.get()), text_of(certificate.get())}, serial_, seconds_of(X509_get0_notAfter(x))};
  }

 private:
  Owned<EVP_PKEY> key_;
  Owned<X509> certificate_;
  std::string serial_;
};

Result<Issued> issue(const KeyAndCertificate& authority, const std::string& name, int days,
                     const std::string& alternative_name, const char* usage) {
  ASSIGN_OR_RETURN(const Owned<X509> issuer, read_certificate(authority.certificate));
  ASSIGN_OR_RETURN(const Owned<EVP_PKEY> issuer_key, read_key(authority.key));
  ASSIGN_OR_RETURN(Draft draft, Draft::begin(name, days));
  RETURN_IF_ERROR(draft.extend(issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(draft.extend(issuer.get(), NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(draft.extend(issuer.get(), NID_ext_key_usage, usage));
  RETURN_IF_ERROR(draft.extend(issuer.get(), NID_subject_alt_name, alternative_name));
  RETURN_IF_ERROR(draft.extend(issuer.get(), NID_authority_key_identifier, "keyid"));
  return draft.sign(issuer.get(), issuer_key.get());
}

}  // namespace

Result<KeyAndCertificate> make_authority(int days) {
  ASSIGN_OR_RETURN(Draft draft, Draft::begin("tuner farm authority", days));
  RETURN_IF_ERROR(draft.extend(nullptr, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(draft.extend(nullptr, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(draft.extend(nullptr, NID_subject_key_identifier, "hash"));
  ASSIGN_OR_RETURN(Issued made, draft.sign(nullptr, nullptr));
  return std::move(made.pem);
}

Result<Issued> issue_daemon(const KeyAndCertificate& authority, int days) {
  return issue(authority, kDaemonName, days, std::string("DNS:") + kDaemonName, "serverAuth");
}

Result<Issued> issue_worker(const KeyAndCertificate& authority, const std::string& name, int days) {
  return issue(authority, name, days, std::string("URI:") + kWorkerUri + name, "clientAuth");
}

Result<int64_t> end_of_certificate(const std::string& pem) {
  ASSIGN_OR_RETURN(const Owned<X509> certificate, read_certificate(pem));
  return seconds_of(X509_get0_notAfter(certificate.get()));
}

}  // namespace tuner::identity
