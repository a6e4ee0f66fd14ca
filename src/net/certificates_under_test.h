// Certificates and keys made for tests, as PEM files in the tests' folder.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace weir {

struct CertificateOrder {
  std::string file{};      // NAME.crt and NAME.key in the tests' folder.
  std::string names{};     // DNS:redis.test,IP:127.0.0.1; empty: a certificate authority.
  long begins_in = -3600;  // Seconds from now,
  long ends_in = 3600;     // both.
  std::string password{};  // Of the key, if any.
};

class CertificateUnderTest {
 public:
  // Signed by the issuer, or by itself.
  explicit CertificateUnderTest(const CertificateOrder& order,
                                const CertificateUnderTest* issuer = nullptr)
      : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509* const made = certificate_.get();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made), order.begins_in);
    X509_gmtime_adj(X509_getm_notAfter(made), order.ends_in);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(order.file.c_str()), -1, -1,
                               0);
    const CertificateUnderTest& by = issuer == nullptr ? *this : *issuer;
    X509_set_issuer_name(made, X509_get_subject_name(by.certificate_.get()));
    X509_set_pubkey(made, key_.get());
    if (order.names.empty()) {
      Extend(NID_basic_constraints, "critical,CA:TRUE");
    } else {
      Extend(NID_subject_alt_name, order.names);
    }
    X509_sign(made, by.key_.get(), EVP_sha256());
    Save(order);
  }

  CertificateUnderTest(const CertificateUnderTest&) = delete;
  CertificateUnderTest& operator=(const CertificateUnderTest&) = delete;
  ~CertificateUnderTest() {
    unlink(file_.c_str());
    unlink(key_file_.c_str());
  }

  const std::string& file() const { return file_; }
  const std::string& key_file() const { return key_file_; }
  X509* certificate() const { return certificate_.get(); }
  EVP_PKEY* key() const { return key_.get(); }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void Extend(int what, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, Free> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str()));
    X509_add_ext(certificate_.get(), extension.get(), -1);
  }
  void Save(const CertificateOrder& order) {
    // Several tests of a program may call theirs the same.
    const std::string stem = testing::TempDir() + "weir-" + std::to_string(getpid()) + "-" +
                             std::to_string(serial_) + "-" + order.file;
    file_ = stem + ".crt";
    key_file_ = stem + ".key";
    const std::unique_ptr<std::FILE, Free> certificate(std::fopen(file_.c_str(), "w"));
    PEM_write_X509(certificate.get(), certificate_.get());
    const std::unique_ptr<std::FILE, Free> key(std::fopen(key_file_.c_str(), "w"));
    const bool secret = !order.password.empty();
    PEM_write_PrivateKey(key.get(), key_.get(), secret ? EVP_aes_256_cbc() : nullptr,
                         reinterpret_cast<const unsigned char*>(order.password.c_str()),
                         static_cast<int>(order.password.size()), nullptr, nullptr);
  }

  static inline long serial_ = 0;
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
  std::string file_;
  std::string key_file_;
};

}  // namespace weir
