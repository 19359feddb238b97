// Whole blobs over a wire that breaks: what arrives is what its name says, or an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "compiler_core/artifact/artifact.h"
#include "measure_server/worker/blob_link.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using testing::HasSubstr;

std::string bytes_of(size_t n) {
  std::string bytes(n, '\0');
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
  return bytes;
}

// A daemon's store in memory, behind a wire that loses calls and replies and may damage bytes.
class BadWire final : public BlobLink {
 public:
  std::map<std::string, std::string> blobs;
  std::function<bool()> lost = [] { return false; };
  int damaged = 0;  // replies still to be damaged
  int calls = 0;

  Status read(const v1::ReadBlobRequest& request, v1::ReadBlobReply* reply, std::stop_token) override {
    ++calls;
    if (lost()) return unavailable("the wire broke");
    const auto found = blobs.find(request.blob().sha256());
    if (found == blobs.end()) return not_found("no such blob");
    std::string bytes = found->second.substr(static_cast<size_t>(request.offset()), 1000);
    if (damaged > 0) --damaged, bytes[0] ^= 1;
    reply->set_bytes(bytes);
    return Status::ok();
  }
  Status write(const v1::WriteBlobRequest& request, v1::WriteBlobReply* reply, std::stop_token) override {
    ++calls;
    if (lost()) return unavailable("the wire broke");
    std::string& have = blobs[request.blob().sha256()];
    if (request.offset() == std::ssize(have)) have += request.bytes();
    reply->set_have(std::ssize(have));
    return lost() ? unavailable("the reply is lost") : Status::ok();
  }
};

TEST(BlobTransfer, AWholeBlobGoesAndComes) {
  BadWire wire;
  const BlobTransfer transfer(wire, [] { return "s"; }, {});
  for (const size_t size : {size_t{1}, size_t{999}, size_t{1000}, size_t{1001}, size_t{600'000}}) {
    const std::string bytes = bytes_of(size);
    EXPECT_TRUE(transfer.send("o", name_of(bytes), bytes).is_ok());
    EXPECT_EQ(transfer.fetch("t", name_of(bytes)).value(), bytes);
  }
}

TEST(BlobTransfer, ABrokenWireIsGoneOnWithWhereItBroke) {
  const RandomSeed seed(3);
  std::mt19937_64 random(seed);
  BadWire wire;
  wire.lost = [&] { return random() % 16 == 0; };
  const BlobTransfer transfer(wire, [] { return "s"; }, {});
  const std::string bytes = bytes_of(20'000);
  EXPECT_TRUE(transfer.send("o", name_of(bytes), bytes).is_ok());
  wire.calls = 0;
  EXPECT_EQ(transfer.fetch("t", name_of(bytes)).value(), bytes);
  EXPECT_LT(wire.calls, 40) << "20 pieces, and those that were lost";
}

TEST(BlobTransfer, DamagedBytesAreFetchedAgainAndThenRefused) {
  BadWire wire;
  const BlobTransfer transfer(wire, [] { return "s"; }, {});
  const std::string bytes = bytes_of(2'500);
  ASSERT_TRUE(transfer.send("o", name_of(bytes), bytes).is_ok());
  wire.damaged = 1;
  EXPECT_EQ(transfer.fetch("t", name_of(bytes)).value(), bytes);
  wire.damaged = 100;
  EXPECT_THAT(transfer.fetch("t", name_of(bytes)).message(), HasSubstr("another digest"));
}

TEST(BlobTransfer, WhatIsNotThereIsSaidAtOnce) {
  BadWire wire;
  const BlobTransfer transfer(wire, [] { return "s"; }, {});
  EXPECT_EQ(transfer.fetch("t", name_of("x")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(wire.calls, 1);
}

TEST(BlobTransfer, AStopEndsTheWait) {
  BadWire wire;
  wire.lost = [] { return true; };
  std::stop_source stop;
  const BlobTransfer transfer(
      wire, [] { return "s"; }, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(transfer.fetch("t", name_of("x")).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(transfer.send("o", name_of("x"), "x").code(), StatusCode::kUnavailable);
}

TEST(ArtifactBlob, IsReadBackAndRefusedWhenItIsNotWhole) {
  Artifact artifact;
  artifact.manifest.entry = "kernel";
  artifact.manifest.target = "llvm -mcpu=cortex-a72";
  artifact.manifest.toolchain = "llvm 22";
  artifact.binary = bytes_of(5'000);
  const std::string blob = artifact_blob(artifact);
  const Result<Artifact> read = parse_artifact_blob(blob);
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_EQ(read->binary, artifact.binary);
  EXPECT_EQ(read->manifest.target, artifact.manifest.target);
  EXPECT_EQ(read->manifest.digest, artifact_digest(artifact));
  EXPECT_THAT(parse_artifact_blob(blob.substr(0, blob.size() - 1)).message(), HasSubstr("digest is"));
  EXPECT_THAT(parse_artifact_blob("{}").message(), HasSubstr("without a newline"));
  EXPECT_FALSE(parse_artifact_blob("{\n").is_ok());
  EXPECT_FALSE(parse_artifact_blob("").is_ok());
}

}  // namespace
}  // namespace tuner
