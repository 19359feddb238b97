// Documents that keys of workloads name by digest (templates/workload/key_document.h), kept in the database beside what was measured.
#pragma once

#include <memory>
#include <string_view>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// Stores the document that the key names, unless it is stored, or the key names none. NotFound: this process cannot find it.
Status keep_document(Store& store, std::string_view workload_key);

// While it lives, find_kernel() also looks in the store, which outlives it.
std::shared_ptr<void> documents_in(const Store& store);

}  // namespace tuner
