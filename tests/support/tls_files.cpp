// "openssl ca" is the one command of OpenSSL 3.0 that takes dates.
#include "support/tls_files.hpp"

#include "support/child_process.hpp"

#include <fstream>

namespace holdfast::test {

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

void request(const std::string& key, const std::string& file, const std::string& name,
             const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "openssl",    "req",     "-newkey", "ec",   "-pkeyopt", "ec_paramgen_curve:prime256v1",
      "-nodes",     "-keyout", key,       "-out", file,       "-subj",
      "/CN=" + name};
  words.insert(words.end(), more.begin(), more.end());
  run_program(words);
}

}  // namespace

tls_files::tls_files() {
  const auto& folder = folder_.path();
  write(folder / "index", "");
  write(folder / "index.attr", "unique_subject = no\n");
  write(folder / "ca.conf",
        "[ca]\ndefault_ca=it\n[it]\ndatabase=" + (folder / "index").string() +
            "\nnew_certs_dir=" + folder.string() +
            "\ndefault_md=sha256\nrand_serial=yes\npolicy=any\n[any]\ncommonName=supplied\n");
  request(folder / "ca.key", folder / "ca.crt", "test authority", {"-x509", "-days", "2"});
}

tls_files::pair tls_files::sign(const std::string& names, const std::string& from,
                                const std::string& to) {
  const auto base = (folder_.path() / std::to_string(++made_)).string();
  request(base + ".key", base + ".csr", "test", {});
  write(base + ".ext", "subjectAltName=" + names + "\n");
  run_program({"openssl",    "ca",
               "-batch",     "-notext",
               "-config",    folder_.path() / "ca.conf",
               "-cert",      authority(),
               "-keyfile",   folder_.path() / "ca.key",
               "-in",        base + ".csr",
               "-out",       base + ".crt",
               "-startdate", from,
               "-enddate",   to,
               "-extfile",   base + ".ext"});
  return {base + ".crt", base + ".key"};
}

tls_files::pair tls_files::signed_for(const std::string& names) {
  return sign(names, "20200101000000Z", "20990101000000Z");
}

tls_files::pair tls_files::expired_for(const std::string& names) {
  return sign(names, "20200101000000Z", "20210101000000Z");
}

tls_files::pair tls_files::self_signed_for(const std::string& names) {
  const auto base = (folder_.path() / std::to_string(++made_)).string();
  request(base + ".key", base + ".crt", "test",
          {"-x509", "-days", "2", "-addext", "subjectAltName=" + names});
  return {base + ".crt", base + ".key"};
}

}  // namespace holdfast::test
