// Certificates and keys for tests, created at run time: an authority, what it signed, and what it
// did not.
#pragma once

#include "support/temporary_folder.hpp"

#include <string>

namespace holdfast::test {

// Not thread-safe. Files in a folder of its own, removed at the end.
class tls_files {
 public:
  // Makes the authority. Throws std::runtime_error if openssl(1) fails.
  tls_files();

  struct pair {
    std::string cert;
    std::string key;
  };
  // Signed by the authority for these names, as in "DNS:localhost,IP:127.0.0.1".
  pair signed_for(const std::string& names);
  // The same, but expired.
  pair expired_for(const std::string& names);
  // Self-signed.
  pair self_signed_for(const std::string& names);

  [[nodiscard]] std::string authority() const { return folder_.path() / "ca.crt"; }

 private:
  pair sign(const std::string& names, const std::string& from, const std::string& to);

  temporary_folder folder_;
  int made_ = 0;
};

}  // namespace holdfast::test
