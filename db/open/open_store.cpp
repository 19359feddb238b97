// Opening by name: the one place that knows which engines there are. Apart from store.h, so that no engine is
// read by what it implements.
#include <utility>

#include "db/damage.h"
#include "db/sqlite/sqlite_store.h"
#include "db/store.h"

namespace tuner {

namespace {

// "postgresql" of "postgresql://host/name"; empty: a path.
std::string_view scheme_of(std::string_view path) {
  const size_t colon = path.find("://");
  return colon == std::string_view::npos || path.substr(0, colon).find('/') != std::string_view::npos
             ? std::string_view()
             : path.substr(0, colon);
}

Status refuse_url(const std::string& path) {
  if (scheme_of(path).empty()) return Status::ok();
  return invalid_argument(path, ": databases on a server are not served yet, expected the path of a file");
}

std::function<std::shared_ptr<void>(const Store&)>& beside() {
  static std::function<std::shared_ptr<void>(const Store&)> made;
  return made;
}

}  // namespace

void set_beside_stores(std::function<std::shared_ptr<void>(const Store&)> made) {
  beside() = std::move(made);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& path, Mode mode) {
  RETURN_IF_ERROR(refuse_url(path));
  Result<std::unique_ptr<Store>> store = mode == Mode::kWrite ? db::SqliteStore::open_for_writing(path)
                                                              : db::SqliteStore::open_for_reading(path);
  if (store && beside()) (*store)->keep_beside(beside()(**store));
  return store;
}

bool is_damaged_database(const std::string& path) {
  return refuse_url(path).is_ok() && db::is_damaged_file(path);
}

Status copy_database(const std::string& from, const std::string& to) {
  for (const std::string& path : {from, to}) RETURN_IF_ERROR(refuse_url(path));
  return db::copy_file_database(from, to);
}

}  // namespace tuner
