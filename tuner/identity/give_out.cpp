#include "tuner/identity/give_out.h"

#include <sys/stat.h>
#include <unistd.h>

#include "compiler_core/base/output_file.h"
#include "proto/daemon_access.h"

namespace tuner::identity {
namespace {

Status check(const Wish& wish) {
  if (wish.address.starts_with("unix:") || !is_daemon_address(wish.address))
    return invalid_argument("--address: expected HOST:PORT as the other host dials the daemon, found \"",
                            wish.address, "\"");
  RETURN_IF_ERROR(check_daemon_port(wish.address).with_context("--address: "));
  if (wish.output == "-") return Status::ok();
  if (access(wish.output.c_str(), F_OK) == 0)
    return invalid_argument(wish.output, ": there is such a file already; choose another name, or remove it");
  return check_output(wish.output);
}

Result<IdentityFolder::LetIn> let_in(const IdentityFolder& folder, const Wish& wish) {
  if (wish.kind == Entry::Kind::kWorker)
    return folder.let_in_worker(wish.name, wish.address, wish.days, wish.fleet);
  const Result<Roles> roles = parse_roles(wish.roles);
  if (!roles) return roles.status().with_context("--");
  return folder.let_in_person(wish.name, *roles, wish.tenant, wish.address, wish.days);
}

}  // namespace

Result<Entry> give_out(const std::string& folder_path, const Wish& wish) {
  RETURN_IF_ERROR(check(wish));
  ASSIGN_OR_RETURN(const IdentityFolder folder, IdentityFolder::open(folder_path));
  ASSIGN_OR_RETURN(IdentityFolder::LetIn in, let_in(folder, wish));
  const mode_t before = umask(077);
  const Status written = write_file(wish.output, in.credentials);
  umask(before);
  if (!written) {
    (void)folder.revoke_mark(in.entry.mark);  // what nobody has is worth nothing
    return written;
  }
  return std::move(in.entry);
}

}  // namespace tuner::identity
