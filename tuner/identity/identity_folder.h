// IdentityFolder: the files by which a daemon knows whom it serves. `tuner admin` writes them, the daemon
// reads them, also while it runs. They lie beside the database, in DATABASE.identity (mode 0700), and not in
// it: databases are copied and handed on, keys are not.
//
//   authority.key .pem   signs all certificates; only `tuner admin` needs the key
//   daemon.key .pem      what the daemon shows
//   register.json        who was let in (register.h)
//   audit.log            one line of JSON for each act: when, which user, what
//
// Who may write the folder is the farm's administrator: there is no other right to it than the file system's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "tuner/identity/certificates.h"
#include "tuner/identity/register.h"

namespace tuner::identity {

class IdentityFolder {
 public:
  static std::string path_of(const std::string& database);
  // NotFound: there is none, and what makes one. Failed: whether there is one cannot be seen.
  static Result<IdentityFolder> open(const std::string& path);
  // A new one, with an authority and a daemon's certificate for so many days. Aborted: there is one already.
  static Result<IdentityFolder> create(const std::string& path, int authority_days, int daemon_days);

  const std::string& path() const { return path_; }

  // PEM texts that a daemon listens with.
  Result<KeyAndCertificate> daemon() const;
  Result<std::string> authority() const;  // its certificate
  Result<Register> entries() const;
  // Changes whenever one of the above does: compare it to know whether to read again.
  std::string stamp() const;

  // The acts. Each is done by one process at a time, and is on disk, with its line in the audit log, when it
  // returns.
  //
  // A new certificate for the daemon, from the same authority: workers and people need nothing new.
  Status renew_daemon(int days) const;
  // Returns the text of a credentials file for the daemon at `address` (proto/daemon_access.h), and the
  // entry.
  struct LetIn {
    std::string credentials;
    Entry entry;
  };
  Result<LetIn> let_in_worker(const std::string& name, const std::string& address, int days,
                              bool fleet = false) const;
  Result<LetIn> let_in_person(const std::string& name, Roles roles, const std::string& tenant,
                              const std::string& address, int days) const;
  // What the tenant may have from now on, which is returned. A change of nothing writes nothing.
  Result<Share> change_share(const std::string& tenant, const ShareChange& change) const;
  // All that was given out under the name so far. Returns how many entries that were. NotFound: none was.
  Result<int> revoke(const std::string& name) const;
  // One entry, by its mark: what was never handed over.
  Status revoke_mark(const std::string& mark) const;

 private:
  explicit IdentityFolder(std::string path) : path_(std::move(path)) {}
  std::string file(const char* name) const;
  Result<KeyAndCertificate> read_pair(const char* name) const;
  Status write_pair(const char* name, const KeyAndCertificate& pair) const;
  Result<std::string> enter(const Entry& entry) const;
  Result<int> revoke_where(const std::string& name, const std::string& mark) const;
  Status audit(const std::string& act, const std::string& name, const std::string& detail) const;

  std::string path_;
};

}  // namespace tuner::identity
