// Keys of workloads that say by digest what a document says in full: a user's source.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tuner {

// The digest in such a key; nothing for keys that need no document. Looks at the text alone.
std::optional<std::string> document_of_key(std::string_view workload_key);

}  // namespace tuner
