// Documents that keys of workloads name by digest (templates/workload/key_document.h), as the database has
// them (KernelRow).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"
#include "db/store.h"

namespace tuner {

// While it lives, find_kernel() also looks in the store, which outlives it.
std::shared_ptr<void> documents_in(const Store& store);

// What a document says to those for whom it is bytes.
struct DocumentFacts {
  std::string digest;
  std::string compiler;  // that its user wants: "cc"
};
// Reads a document, whose key can be read from now on. InvalidArgument: it is none, or has not `digest`,
// where that is not empty.
Result<DocumentFacts> read_document(std::string_view document, std::string_view digest = {});
// NotFound: this process knows no document of that digest, and finds none.
Result<std::string> find_document(std::string_view digest);

// OK if the document is a kernel's, and has the digest that the row says. InvalidArgument: what is wrong.
Status check_kernel(const KernelRow& kernel);

// What the store's own checksums cannot tell: calls `wrong` with a line for each document that is not what
// its digest says. Damaged rows are left out, which Store::check_integrity() names. Returns how many it
// looked at.
Result<int64_t> check_kernels(const Store& store, const std::stop_token& stop,
                              const std::function<void(const std::string& line)>& wrong);

}  // namespace tuner
