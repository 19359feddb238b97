// BlobLink: the daemon's store of what builders have made, reduced to what workers need. Any thread may call.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "build.pb.h"
#include "compiler_core/base/status.h"
#include "proto/daemon_access.h"

namespace tuner {

class BlobLink {
 public:
  virtual ~BlobLink() = default;
  // NotFound: the daemon does not have it, or no lease (no order) of the session is about it. Aborted: it
  // does not know the session. InvalidArgument: the bytes are not what their name says. Any other error: try
  // again.
  virtual Status read(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply,
                      std::stop_token interrupt) = 0;
  virtual Status write(const v1::WriteBlobRequest& request, v1::WriteBlobReply* reply,
                       std::stop_token interrupt) = 0;
};

// Has a connection of its own, beside that of the Syncs, so that these never wait behind bytes.
std::unique_ptr<BlobLink> make_blob_link(DaemonAccess access);

// Moves whole blobs: goes on after each trouble of the wire where it was, until it is done or `stop` is
// requested (Unavailable).
class BlobTransfer {
 public:
  using Session = std::function<std::string()>;  // of the moment: the worker may register anew meanwhile
  // `link` outlives this.
  BlobTransfer(BlobLink& link, Session session, std::stop_token stop)
      : link_(link), session_(std::move(session)), stop_(std::move(stop)) {}

  // The bytes, which are those of the name. NotFound: as BlobLink.
  Result<std::string> fetch(const std::string& trial_id, const v1::Blob& blob) const;
  // The same of an order that this builder holds.
  Result<std::string> fetch_for_order(const std::string& order_id, const v1::Blob& blob) const;
  // OK: the daemon has it. NotFound, InvalidArgument, Failed (it does not take it): as BlobLink.
  Status send(const std::string& order_id, const v1::Blob& blob, std::string_view bytes) const;

 private:
  Result<std::string> fetch(v1::ReadBlobRequest request, const v1::Blob& blob) const;
  Status pause(int tries) const;

  BlobLink& link_;
  const Session session_;
  const std::stop_token stop_;
};

// The name of these bytes.
v1::Blob name_of(std::string_view bytes);

}  // namespace tuner
