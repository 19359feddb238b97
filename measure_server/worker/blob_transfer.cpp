#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/worker/blob_link.h"

namespace tuner {
namespace {

constexpr size_t kChunk = size_t{256} << 10;
constexpr int kMostFailures = 300;  // in a row: some ten minutes
constexpr int kMostRefusals = 10;   // of a daemon that does not take what it is sent
constexpr int kMostDamaged = 3;

// What waiting and trying again may mend.
bool may_pass(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDeadlineExceeded ||
         status.code() == StatusCode::kAborted;
}

}  // namespace

v1::Blob name_of(std::string_view bytes) {
  v1::Blob blob;
  blob.set_sha256(sha256_hex(bytes));
  blob.set_bytes(static_cast<int64_t>(bytes.size()));
  return blob;
}

// Longer after each failure; an error once the transfer is to end.
Status BlobTransfer::pause(int tries) const {
  const auto limit = std::chrono::milliseconds(std::min(100 << std::min(tries, 5), 2'000));
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop_, limit, [] { return false; });
  return stop_.stop_requested() ? unavailable("the worker ends") : Status::ok();
}

Result<std::string> BlobTransfer::fetch(const std::string& trial_id, const v1::Blob& blob) const {
  v1::ReadBlobRequest request;
  request.set_trial_id(trial_id);
  return fetch(std::move(request), blob);
}

Result<std::string> BlobTransfer::fetch_for_order(const std::string& order_id, const v1::Blob& blob) const {
  v1::ReadBlobRequest request;
  request.set_order_id(order_id);
  return fetch(std::move(request), blob);
}

Result<std::string> BlobTransfer::fetch(v1::ReadBlobRequest request, const v1::Blob& blob) const {
  *request.mutable_blob() = blob;
  std::string bytes;
  int failures = 0, damaged = 0;
  while (std::ssize(bytes) < blob.bytes()) {
    request.set_session(session_());
    request.set_offset(std::ssize(bytes));
    v1::ReadBlobReply reply;
    const Status status = link_.read(request, &reply, stop_);
    if (status.is_ok() && reply.bytes().empty()) return not_found("blob ", blob.sha256(), " ends too early");
    if (status.is_ok()) {
      failures = 0;
      bytes += reply.bytes();
      if (std::ssize(bytes) < blob.bytes()) continue;
      if (sha256_hex(bytes) == blob.sha256()) return bytes;
      // On the way, or in the daemon's memory: its disk was checked.
      if (++damaged == kMostDamaged) return not_found("blob ", blob.sha256(), " arrives with another digest");
      bytes.clear();
      continue;
    }
    if (status.code() == StatusCode::kNotFound || status.code() == StatusCode::kInvalidArgument)
      return status;
    if (++failures >= kMostFailures) return not_found("blob ", blob.sha256(), ": ", status.message());
    RETURN_IF_ERROR(pause(failures));
  }
  return bytes;
}

Status BlobTransfer::send(const std::string& order_id, const v1::Blob& blob, std::string_view bytes) const {
  int failures = 0;
  // The first call sends what there is of a small blob, so that most need one; a long one asks first what is
  // there.
  int64_t have = 0;
  bool asked = bytes.size() <= kChunk;
  for (;;) {
    v1::WriteBlobRequest request;
    request.set_session(session_());
    request.set_order_id(order_id);
    *request.mutable_blob() = blob;
    request.set_offset(have);
    if (asked) request.set_bytes(std::string(bytes.substr(static_cast<size_t>(have), kChunk)));
    v1::WriteBlobReply reply;
    const Status status = link_.write(request, &reply, stop_);
    if (status.is_ok()) {
      failures = 0;
      asked = true;
      have = std::clamp<int64_t>(reply.have(), 0, blob.bytes());
      if (have == blob.bytes()) return Status::ok();
      continue;
    }
    if (status.code() == StatusCode::kNotFound || status.code() == StatusCode::kInvalidArgument)
      return status;
    if (++failures >= (may_pass(status) ? kMostFailures : kMostRefusals)) return status;
    RETURN_IF_ERROR(pause(failures));
  }
}

}  // namespace tuner
