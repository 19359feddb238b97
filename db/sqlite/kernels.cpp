// Kernels that users brought as source.
#include "compiler_core/base/clock.h"
#include "db/sqlite/sql.h"
#include "db/sqlite/sqlite_store.h"

namespace tuner::db {

namespace {

constexpr size_t kDigestLength = 64;

Status check_kernel(const KernelRow& kernel) {
  if (kernel.digest.size() != kDigestLength ||
      kernel.digest.find_first_not_of("0123456789abcdef") != std::string::npos)
    return invalid_argument("a kernel's digest has ", kDigestLength, " hexadecimal digits");
  if (kernel.document.empty()) return invalid_argument("kernel ", kernel.digest, ": its document is empty");
  if (kernel.document.size() > kMostKernelBytes)
    return invalid_argument("kernel ", kernel.digest, ": its document has ", kernel.document.size(),
                            " bytes, expected at most ", kMostKernelBytes);
  return Status::ok();
}

}  // namespace

Result<bool> insert_kernel(Connection& connection, KernelRow kernel, const std::function<int64_t()>& new_id) {
  RETURN_IF_ERROR(check_kernel(kernel));
  ASSIGN_OR_RETURN(const SqlRow there, connection.one(kKernelOfTenant, {kernel.digest, kernel.tenant}));
  if (!there.empty()) return false;
  kernel.id = new_id();
  if (kernel.brought_at_us == 0) kernel.brought_at_us = wall_time_us();
  static const std::string kInsert =
      str("INSERT INTO kernel (", kKernelColumns, ") VALUES (", placeholders(kKernelColumns), ")");
  RETURN_IF_ERROR(connection.run(kInsert, to_row(kernel)));
  return true;
}

Result<KernelRow> SqliteStore::kernel(std::string_view digest,
                                      const std::optional<std::string>& tenant) const {
  return read([&](Connection& c) -> Result<KernelRow> {
    ASSIGN_OR_RETURN(const SqlRow row, tenant ? c.one(kKernelOfTenant, {std::string(digest), *tenant})
                                              : c.one(kKernelOfAnybody, {std::string(digest)}));
    if (row.empty())
      return not_found("the source of kernel ", digest.substr(0, kDigestLength), " is not here");
    return kernel_from_row(row);
  });
}

Result<int64_t> SqliteStore::kernel_bytes(std::string_view tenant) const {
  return read([&](Connection& c) -> Result<int64_t> {
    ASSIGN_OR_RETURN(const SqlRow row, c.one(kKernelBytes, {std::string(tenant)}));
    return std::get<int64_t>(row.at(0));
  });
}

// Each in a snapshot of its own: a document may have many megabytes.
Status SqliteStore::for_each_kernel(const std::function<bool(const KernelRow&)>& f,
                                    const std::function<void(const Status&)>& damaged) const {
  for (int64_t after = 0;;) {
    const Result<SqlRow> row = read([&](Connection& c) { return c.one(kKernelAfter, {after}); });
    if (!row) return row.status();
    if (row->empty()) return Status::ok();
    after = std::get<int64_t>(row->front());  // INTEGER PRIMARY KEY: whatever else the row says
    const Result<KernelRow> kernel = kernel_from_row(*row);
    if (!kernel && !damaged) return kernel.status();
    if (!kernel)
      damaged(kernel.status());
    else if (!f(*kernel))
      return Status::ok();
  }
}

}  // namespace tuner::db
