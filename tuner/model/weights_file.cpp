#include "tuner/model/weights_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler_core/artifact/artifact.h"

namespace tuner {
namespace {

constexpr size_t kBlock = 64;
static_assert(sizeof(tuner_weights_header) == 2 * kBlock);

}  // namespace

Result<WeightsFile> WeightsFile::create(const std::string& path) {
  ASSIGN_OR_RETURN(OutputFile opened, OutputFile::open(path));
  WeightsFile file(std::move(opened));
  RETURN_IF_ERROR(file.file_.write(std::string(sizeof(tuner_weights_header), '\0')));
  file.facts_.bytes = sizeof(tuner_weights_header);
  return file;
}

Status WeightsFile::append(std::string_view bytes) {
  const size_t whole = bytes.size() / kBlock * kBlock;
  tuner_checksum_add(&sum_, bytes.data(), static_cast<int64_t>(whole));
  RETURN_IF_ERROR(file_.write(bytes.substr(0, whole)));
  facts_.bytes += static_cast<int64_t>(whole);
  if (whole == bytes.size()) return Status::ok();
  char last[kBlock] = {};
  std::memcpy(last, bytes.data() + whole, bytes.size() - whole);
  tuner_checksum_add(&sum_, last, kBlock);
  facts_.bytes += kBlock;
  return file_.write({last, kBlock});
}

Result<int64_t> WeightsFile::add(std::string_view bytes, const std::string& use) {
  std::string digest = sha256_hex(bytes);
  const auto [known, is_new] = known_.emplace(digest, facts_.entries.size());
  if (is_new) {
    facts_.entries.push_back(
        {facts_.bytes, static_cast<int64_t>(bytes.size()), std::move(digest), std::vector<std::string>()});
    RETURN_IF_ERROR(append(bytes));
  }
  WeightsEntry& entry = facts_.entries[known->second];
  entry.uses.push_back(use);
  return entry.offset;
}

Result<WeightsFacts> WeightsFile::finish() {
  std::string list;
  for (const WeightsEntry& e : facts_.entries) list += str(e.offset, " ", e.bytes, " ", e.digest, "\n");
  facts_.digest = sha256_hex(list);
  facts_.checksum = tuner_checksum_end(&sum_);
  tuner_weights_header header{};
  std::memcpy(header.magic, TUNER_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = TUNER_WEIGHTS_VERSION;
  header.header_bytes = sizeof header;
  header.file_bytes = facts_.bytes;
  std::memcpy(header.digest, facts_.digest.data(), sizeof header.digest);
  if (::pwrite(file_.descriptor(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
    return failed("the weights file cannot be written: ", std::strerror(errno));
  RETURN_IF_ERROR(file_.finish());
  return std::move(facts_);
}

}  // namespace tuner
