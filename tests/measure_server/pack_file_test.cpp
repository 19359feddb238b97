// Packs on disk: what was written comes back, and what was not is refused.
#include "measure_server/runner/pack_file.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace tuner {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

PackCandidate candidate(const std::string& config, const std::string& binary) {
  PackCandidate c{.template_name = "matmul_cuda",
                  .config = config,
                  .template_version = 3,
                  .build_ms = 12.5,
                  .picked = PackPick::kEstimate,
                  .estimated_ns = 4321.5,
                  .predicted_rank = 2};
  c.artifact.binary = binary;
  Manifest& m = c.artifact.manifest;
  m.kind = binary_kind::kCubin;
  m.entry = "matmul";
  m.args = {{"a", BufferRole::kInput, DType::kFloat32, {2, 3}, "", 24},
            {"c", BufferRole::kOutput, DType::kFloat32, {2, 2}, "", 16}};
  m.launches = {LaunchInfo{.kernel = "matmul", .grid = {7, 1, 1}, .block = {32, 1, 1}, .params = {0, 1}}};
  m.target = "cuda -arch=sm_90a";
  m.toolchain = "nvrtc 13.0";
  return c;
}

Pack example() {
  Pack pack{.about = "a test", .plan = default_pack_plan()};
  pack.plan.caches = Caches::kFlush;
  pack.plan.deadline_s = 77;
  PackTask task{.workload_key = "v1 matmul", .target = "cuda -arch=sm_90a", .input_seed = 0xfedcba9876543210};
  task.inputs = {{"a", 0, 6}, {"b", 1, 4, DType::kInt8}, {"scale", 2, 3, DType::kFloat32, 0x1p-12F}};
  task.references = {{"c", std::string("reference\0bytes", 15)}};
  task.check = {1e-5, 2e-5};
  task.candidates = {candidate("x=1", "binary one"), candidate("x=2", "binary two"),
                     candidate("x=3", "binary one")};
  pack.tasks = {task, task};
  pack.tasks[1].workload_key = "v1 other";
  return pack;
}

class PackFileTest : public testing::Test {
 protected:
  PackFileTest() { path_ = (folder_ / "a.pack").string(); }

  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  std::string path_;
};

TEST_F(PackFileTest, ComesBackAsItWas) {
  const Pack e = example();
  ASSERT_TRUE(write_pack(e, path_).is_ok());
  const Result<PackFile> file = PackFile::open(path_);
  ASSERT_TRUE(file.is_ok()) << file.message();
  const Pack& p = file->pack();
  EXPECT_EQ(p.about, "a test");
  ASSERT_EQ(p.plan.rounds.size(), 3u);
  EXPECT_EQ(p.plan.rounds[0].keep, 0.25);
  EXPECT_EQ(p.plan.rounds[1].keep_at_most, 10);
  EXPECT_EQ(p.plan.rounds[2].repeats, 50);
  EXPECT_EQ(p.plan.caches, Caches::kFlush);
  EXPECT_EQ(p.plan.deadline_s, 77);
  ASSERT_EQ(p.tasks.size(), 2u);
  EXPECT_EQ(p.tasks[0].input_seed, 0xfedcba9876543210);
  EXPECT_EQ(p.tasks[0].inputs[0].count, 6);
  EXPECT_EQ(p.tasks[0].inputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(p.tasks[0].inputs[0].factor, 1);
  EXPECT_EQ(p.tasks[0].inputs[1].dtype, DType::kInt8);
  EXPECT_EQ(p.tasks[0].inputs[2].factor, 0x1p-12F);
  EXPECT_EQ(p.tasks[0].check.relative, 2e-5);
  EXPECT_EQ(p.tasks[1].workload_key, "v1 other");
  EXPECT_TRUE(file->verify().is_ok()) << file->verify().message();
  EXPECT_EQ(*file->reference(0, 0), std::string("reference\0bytes", 15));
  for (size_t c = 0; c < 3; ++c) {
    const Result<Artifact> artifact = file->artifact(1, c);
    ASSERT_TRUE(artifact.is_ok()) << artifact.message();
    EXPECT_EQ(artifact->binary, e.tasks[1].candidates[c].artifact.binary);
    EXPECT_EQ(artifact->manifest.digest, artifact_digest(*artifact));
    EXPECT_EQ(artifact->manifest.launches[0].grid[0], 7);
    EXPECT_EQ(p.tasks[1].candidates[c].config, str("x=", c + 1));
    EXPECT_EQ(p.tasks[1].candidates[c].template_version, 3);
    EXPECT_EQ(p.tasks[1].candidates[c].picked, PackPick::kEstimate);
    EXPECT_EQ(p.tasks[1].candidates[c].estimated_ns, 4321.5);
    EXPECT_EQ(p.tasks[1].candidates[c].predicted_rank, 2);
  }
  EXPECT_FALSE(fs::exists(path_ + ".part"));
}

// Its index with `from` replaced by `to`, of the same length, as version `version`.
std::string rewritten(std::string pack, const std::string& from, const std::string& to, char version) {
  constexpr size_t kDigest = 24, kIndex = 56;
  uint64_t index_bytes = 0;
  std::memcpy(&index_bytes, pack.data() + 16, sizeof index_bytes);
  const size_t at = pack.find(from, kIndex);
  CHECK(at != std::string::npos && from.size() == to.size()) << "no " << from << " in the pack";
  pack.replace(at, from.size(), to);
  const std::string digest = sha256_hex(pack.substr(kIndex, index_bytes));
  for (size_t i = 0; i < 32; ++i)
    pack[kDigest + i] = static_cast<char>(std::stoi(digest.substr(2 * i, 2), nullptr, 16));
  pack[8] = version;
  return pack;
}

TEST_F(PackFileTest, PacksOfVersion2CalledTheCachesCold) {
  ASSERT_TRUE(write_pack(example(), path_).is_ok());
  const std::string whole = bytes();
  const auto read = [&](const std::string& to) {
    write(rewritten(whole, R"("caches":"flush")", to, 2));
    return PackFile::open(path_);
  };
  const Result<PackFile> flushed = read(R"("cold":"flush"  )"), warm = read(R"("cold":"none"   )");
  ASSERT_TRUE(flushed.is_ok()) << flushed.message();
  ASSERT_TRUE(warm.is_ok()) << warm.message();
  EXPECT_EQ(flushed->pack().plan.caches, Caches::kFlush);
  EXPECT_EQ(warm->pack().plan.caches, Caches::kWarm);
  EXPECT_THAT(read(R"("caches":"icy"  )").message(),
              HasSubstr("caches: found \"icy\", expected warm, flush or rotate"));
}

TEST_F(PackFileTest, PacksOfVersion4KnewNoFactorOfInputs) {
  ASSERT_TRUE(write_pack(example(), path_).is_ok());
  const std::string whole = bytes();
  write(rewritten(whole, R"("factor":0.000244140625)", R"("nothing":0.00024414062)", 4));
  const Result<PackFile> old = PackFile::open(path_);
  ASSERT_TRUE(old.is_ok()) << old.message();
  EXPECT_EQ(old->pack().tasks[0].inputs[2].factor, 1);
  write(rewritten(whole, R"("factor":1.0)", R"("factor":1.5)", 5));
  EXPECT_THAT(PackFile::open(path_).message(), HasSubstr("factor: found 1.5, expected 0..1"));
}

TEST_F(PackFileTest, TheSameBytesAreStoredOnce) {
  Pack pack = example();
  const std::string large(100'000, 'x');
  for (PackTask& t : pack.tasks)
    for (PackCandidate& c : t.candidates) c.artifact.binary = large;
  ASSERT_TRUE(write_pack(pack, path_).is_ok());
  EXPECT_LT(bytes().size(), 120'000u);
}

TEST_F(PackFileTest, TwoPacksHaveTwoIds) {
  Pack pack = example();
  ASSERT_TRUE(write_pack(pack, path_).is_ok());
  const std::string first = PackFile::open(path_)->id();
  ASSERT_TRUE(write_pack(pack, path_).is_ok());
  EXPECT_EQ(PackFile::open(path_)->id(), first);
  pack.tasks[0].candidates[0].artifact.binary = "another";
  ASSERT_TRUE(write_pack(pack, path_).is_ok());
  EXPECT_NE(PackFile::open(path_)->id(), first);
}

TEST_F(PackFileTest, PacksWithoutSenseAreNotWritten) {
  EXPECT_THAT(write_pack(Pack{.plan = default_pack_plan()}, path_).message(), HasSubstr("no task"));
  Pack pack = example();
  pack.tasks[1].candidates.clear();
  EXPECT_THAT(write_pack(pack, path_).message(), HasSubstr("v1 other has no candidate"));
  pack = example();
  pack.plan.rounds.clear();
  EXPECT_THAT(write_pack(pack, path_).message(), HasSubstr("no round"));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(PackFileTest, OtherFilesAndVersionsAreRefusedByName) {
  EXPECT_THAT(PackFile::open(path_).message(), HasSubstr("a.pack: cannot be opened"));
  EXPECT_THAT(PackFile::open(folder_.string()).message(), HasSubstr("not a pack"));
  write("something else, and longer than the header of a pack: sixty bytes");
  EXPECT_THAT(PackFile::open(path_).message(),
              HasSubstr("not a pack; expected a file written by `tuner pack`"));
  ASSERT_TRUE(write_pack(example(), path_).is_ok());
  std::string text = bytes();
  text[8] = 9;
  write(text);
  EXPECT_THAT(PackFile::open(path_).message(), HasSubstr("pack version 9, this runner reads 6"));
}

TEST_F(PackFileTest, ACutPackIsRefusedAtEveryLength) {
  ASSERT_TRUE(write_pack(example(), path_).is_ok());
  const std::string whole = bytes();
  for (size_t n = 0; n < whole.size(); n += n < 64 ? 1 : 37) {
    write(whole.substr(0, n));
    EXPECT_FALSE(PackFile::open(path_).is_ok()) << n << " of " << whole.size() << " bytes";
  }
}

// A changed byte is found when the pack is opened, or by verify() and when the part it lies in is read.
TEST_F(PackFileTest, AChangedByteIsNeverRun) {
  const RandomSeed seed(20261121);
  std::mt19937 random(seed);
  const Pack e = example();
  ASSERT_TRUE(write_pack(e, path_).is_ok());
  const std::string whole = bytes();
  for (int i = 0; i < 500; ++i) {
    std::string text = whole;
    size_t at = random() % text.size();
    if (at >= 12 && at < 16) at = 0;  // four bytes of the header are not used yet
    text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
    write(text);
    const Result<PackFile> file = PackFile::open(path_);
    if (!file.is_ok()) continue;
    bool found = false;
    for (size_t t = 0; t < 2; ++t) {
      found = found || !file->reference(t, 0).is_ok();
      for (size_t c = 0; c < 3; ++c) found = found || !file->artifact(t, c).is_ok();
    }
    EXPECT_EQ(file->verify().code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(found) << "byte " << at << " changed and nobody saw it";
  }
}

}  // namespace
}  // namespace tuner
