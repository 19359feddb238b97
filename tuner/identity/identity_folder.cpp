#include "tuner/identity/identity_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "proto/daemon_access.h"

namespace tuner::identity {
namespace {

constexpr char kAuthority[] = "authority", kDaemon[] = "daemon", kRegister[] = "register.json",
               kAudit[] = "audit.log";
constexpr size_t kMostBytes = 64 << 20;

int64_t now_s() { return static_cast<int64_t>(std::time(nullptr)); }

// One act at a time: an advisory lock on the folder, as long as this lives.
class ActLock {
 public:
  static Result<ActLock> take(const std::string& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(folder, ": ", std::strerror(errno));
    ActLock lock(fd);
    while (flock(fd, LOCK_EX) != 0)
      if (errno != EINTR) return failed(folder, ": cannot be locked: ", std::strerror(errno));
    return lock;
  }
  ActLock(ActLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ActLock& operator=(ActLock&&) = delete;
  ~ActLock() {
    if (fd_ >= 0) close(fd_);
  }

 private:
  explicit ActLock(int fd) : fd_(fd) {}
  int fd_;
};

// A file of ours that only we may read, complete and on disk or unchanged.
Status replace_secret(const std::string& path, std::string_view bytes) {
  const mode_t before = umask(077);
  const Status written = replace_file(path, bytes, Durability::kSynced);
  umask(before);
  return written;
}

}  // namespace

std::string IdentityFolder::path_of(const std::string& database) {
  const Result<std::string> real = follow_links(database);
  return (real ? *real : database) + ".identity";
}

std::string IdentityFolder::file(const char* name) const { return path_ + "/" + name; }

Result<IdentityFolder> IdentityFolder::open(const std::string& path) {
  IdentityFolder folder(path);
  struct stat info {};
  if (stat(folder.file(kRegister).c_str(), &info) == 0) return folder;
  if (errno != ENOENT && errno != ENOTDIR)  // there may be one
    return failed(folder.file(kRegister), ": cannot be read: ", std::strerror(errno));
  return not_found(path, ": there is no farm's identity yet. `tuner admin ca` makes it");
}

Result<IdentityFolder> IdentityFolder::create(const std::string& path, int authority_days, int daemon_days) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return failed(path, ": cannot be made: ", std::strerror(errno));
  IdentityFolder folder(path);
  ASSIGN_OR_RETURN(const ActLock lock, ActLock::take(path));
  if (access(folder.file(kRegister).c_str(), F_OK) == 0)
    return Status(
        StatusCode::kAborted,
        path +
            ": there is an identity already. `tuner admin ca --renew` makes the daemon a new certificate; "
            "to begin anew, remove the folder: all that was given out is then worth nothing");
  ASSIGN_OR_RETURN(const KeyAndCertificate authority, make_authority(authority_days));
  ASSIGN_OR_RETURN(const Issued daemon, issue_daemon(authority, daemon_days));
  RETURN_IF_ERROR(folder.write_pair(kAuthority, authority));
  RETURN_IF_ERROR(folder.write_pair(kDaemon, daemon.pem));
  RETURN_IF_ERROR(folder.audit("ca", "", str("daemon's certificate until ", date_text(daemon.until_s))));
  // Last: with the register the folder is complete.
  RETURN_IF_ERROR(replace_secret(folder.file(kRegister), to_json({})));
  return folder;
}

Result<KeyAndCertificate> IdentityFolder::read_pair(const char* name) const {
  KeyAndCertificate pair;
  ASSIGN_OR_RETURN(pair.key, read_whole(path_ + "/" + name + ".key", kMostBytes));
  ASSIGN_OR_RETURN(pair.certificate, read_whole(path_ + "/" + name + ".pem", kMostBytes));
  return pair;
}

// The key first. A reader that meets the new key with the old certificate is told that they do not belong
// together, and reads again at the next change.
Status IdentityFolder::write_pair(const char* name, const KeyAndCertificate& pair) const {
  RETURN_IF_ERROR(replace_secret(path_ + "/" + name + ".key", pair.key));
  return replace_secret(path_ + "/" + name + ".pem", pair.certificate);
}

Result<KeyAndCertificate> IdentityFolder::daemon() const { return read_pair(kDaemon); }
Result<std::string> IdentityFolder::authority() const {
  return read_whole(file("authority.pem"), kMostBytes);
}

Result<Register> IdentityFolder::entries() const {
  ASSIGN_OR_RETURN(const std::string text, read_whole(file(kRegister), kMostBytes));
  Result<Register> found = parse_register(text);
  if (!found) return found.status().with_context(file(kRegister) + ": ");
  return found;
}

std::string IdentityFolder::stamp() const {
  std::string text;
  for (const char* name : {kRegister, "daemon.key", "daemon.pem", "authority.pem"}) {
    struct stat info {};
    if (stat(file(name).c_str(), &info) == 0)
      text += str(info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ");
    else
      text += "none ";
  }
  return text;
}

Status IdentityFolder::renew_daemon(int days) const {
  ASSIGN_OR_RETURN(const ActLock lock, ActLock::take(path_));
  ASSIGN_OR_RETURN(const KeyAndCertificate authority, read_pair(kAuthority));
  ASSIGN_OR_RETURN(const Issued daemon, issue_daemon(authority, days));
  RETURN_IF_ERROR(write_pair(kDaemon, daemon.pem));
  return audit("ca renewed", "", str("daemon's certificate until ", date_text(daemon.until_s)));
}

// Takes the entry up; returns the authority's certificate, which goes with whatever is given out.
Result<std::string> IdentityFolder::enter(const Entry& entry) const {
  ASSIGN_OR_RETURN(Register all, entries());
  const bool worker = entry.kind == Entry::Kind::kWorker;
  for (const Entry& e : all.entries)
    if (e.name == entry.name && e.kind != entry.kind && !e.revoked)
      return invalid_argument("name: ", entry.name, " is a ", worker ? "token" : "worker",
                              " already; choose another one");
  all.entries.push_back(entry);
  // The audit first: what is not written down is not done.
  RETURN_IF_ERROR(audit(
      worker ? "worker" : "token", entry.name,
      worker ? str("certificate ", entry.mark, " until ", date_text(entry.until_s))
             : str("roles ", roles_text(entry.roles), entry.tenant.empty() ? "" : ", tenant " + entry.tenant,
                   ", until ", date_text(entry.until_s))));
  RETURN_IF_ERROR(replace_secret(file(kRegister), to_json(all)));
  return authority();
}

Result<IdentityFolder::LetIn> IdentityFolder::let_in_worker(const std::string& name,
                                                            const std::string& address, int days,
                                                            bool fleet) const {
  RETURN_IF_ERROR(check_name(name));
  ASSIGN_OR_RETURN(const ActLock lock, ActLock::take(path_));
  ASSIGN_OR_RETURN(const KeyAndCertificate authority, read_pair(kAuthority));
  ASSIGN_OR_RETURN(const Issued issued, issue_worker(authority, name, days));
  LetIn in;
  in.entry = {.kind = Entry::Kind::kWorker,
              .name = name,
              .mark = issued.serial,
              .roles = Role::kWork,
              .made_s = now_s(),
              .until_s = issued.until_s};
  DaemonAccess access{.address = address,
                      .worker = fleet ? str(name, kOfAFleet) : name,
                      .certificate = issued.pem.certificate,
                      .key = issued.pem.key};
  ASSIGN_OR_RETURN(access.authority, enter(in.entry));
  in.credentials = credentials_text(
      access, str(fleet ? "Workers of the fleet " : "Worker ", name, " until ", date_text(issued.until_s),
                  ". Whoever has this file is ", fleet ? "one of them." : "that worker."));
  return in;
}

Result<IdentityFolder::LetIn> IdentityFolder::let_in_person(const std::string& name, Roles roles,
                                                            const std::string& tenant,
                                                            const std::string& address, int days) const {
  RETURN_IF_ERROR(check_name(name));
  if (!tenant.empty()) RETURN_IF_ERROR(check_name(tenant).with_context("tenant: "));
  ASSIGN_OR_RETURN(const ActLock lock, ActLock::take(path_));
  DaemonAccess access{.address = address, .token = make_token()};
  LetIn in;
  in.entry = {.kind = Entry::Kind::kToken,
              .name = name,
              .mark = mark_of(access.token),
              .roles = roles,
              .tenant = tenant,
              .made_s = now_s(),
              .until_s = now_s() + int64_t{days} * 86'400};
  ASSIGN_OR_RETURN(access.authority, enter(in.entry));
  in.credentials =
      credentials_text(access, str(name, " may ", roles_text(roles), " until ", date_text(in.entry.until_s),
                                   ". Whoever has this file may, too."));
  return in;
}

Result<Share> IdentityFolder::change_share(const std::string& tenant, const ShareChange& change) const {
  RETURN_IF_ERROR(check_name(tenant).with_context("tenant: "));
  ASSIGN_OR_RETURN(const ActLock lock, ActLock::take(path_));
  ASSIGN_OR_RETURN(Register all, entries());
  const auto known = all.shares.find(tenant);
  const Share before = known == all.shares.end() ? Share() : known->second;
  const Share share = change.apply(before);
  if (share == before) return share;
  all.shares[tenant] = share;
  RETURN_IF_ERROR(
      audit("tenant", tenant,
            str("weight ", share.weight, ", at most ", share.most_leases, " leases, ", share.most_jobs,
                " jobs and ", share.most_source_mib, " MiB of sources (0: no limit)")));
  RETURN_IF_ERROR(replace_secret(file(kRegister), to_json(all)));
  return share;
}

Result<int> IdentityFolder::revoke(const std::string& name) const { return revoke_where(name, ""); }
Status IdentityFolder::revoke_mark(const std::string& mark) const { return revoke_where("", mark).status(); }

// An empty word asks for nothing.
Result<int> IdentityFolder::revoke_where(const std::string& name, const std::string& mark) const {
  ASSIGN_OR_RETURN(const ActLock lock, ActLock::take(path_));
  ASSIGN_OR_RETURN(Register all, entries());
  int count = 0;
  for (Entry& e : all.entries) {
    if ((!name.empty() && e.name != name) || (!mark.empty() && e.mark != mark) || e.revoked) continue;
    e.revoked = true;
    ++count;
  }
  if (count == 0)
    return not_found("revoke: nothing was given out to ", name,
                     " that is still good. See `tuner admin list`");
  RETURN_IF_ERROR(audit("revoke", name, str(count, count == 1 ? " entry" : " entries")));
  RETURN_IF_ERROR(replace_secret(file(kRegister), to_json(all)));
  return count;
}

Status IdentityFolder::audit(const std::string& act, const std::string& name,
                             const std::string& detail) const {
  const nlohmann::ordered_json line{
      {"time", date_text(now_s())}, {"uid", getuid()}, {"act", act}, {"name", name}, {"detail", detail}};
  const std::string text = line.dump() + "\n";
  const int fd = ::open(file(kAudit).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return failed(file(kAudit), ": ", std::strerror(errno));
  const off_t before = lseek(fd, 0, SEEK_END);
  const ssize_t count = write(fd, text.data(), text.size());
  if (count >= 0 && count < static_cast<ssize_t>(text.size())) errno = ENOSPC;
  const bool written = count == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  if (!written && before >= 0) (void)!ftruncate(fd, before);  // no part of a line stays
  close(fd);
  return written ? Status::ok() : failed(file(kAudit), ": ", std::strerror(error));
}

}  // namespace tuner::identity
