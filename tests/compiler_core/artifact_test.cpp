// Artifacts on disk: what goes in comes out, and damage is refused.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/runtime/kernel.h"

namespace tuner {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

Artifact sample() {
  Artifact a;
  a.binary = std::string(
      "\x7f"
      "ELF not really, \0 with a zero",
      30);
  a.manifest = {.entry = "matmul",
                .args = {{"A", BufferRole::kInput, DType::kFloat32, {2, 3}, "", 24},
                         {"C", BufferRole::kOutput, DType::kFloat64, {}, "scalar", 8}},
                .pack_entry = "matmul_pack",
                .pack_args = {{"B", BufferRole::kConstant, DType::kInt8, {5}, "", 5}},
                .workspace_bytes = 128,
                .workspace_bytes_per_thread = 64,
                .threads = 2,
                .target = "llvm -mcpu=haswell -threads=2",
                .toolchain = "llvm 22.1.8 codegen 1"};
  return a;
}

class ArtifactFiles : public ::testing::Test {
 protected:
  std::string folder_ = ::testing::TempDir() + "/artifact_test." + std::to_string(getpid()) + "/deep/er";
  void TearDown() override { fs::remove_all(fs::path(folder_).parent_path().parent_path()); }
};

TEST_F(ArtifactFiles, RoundTrip) {
  const Result<std::string> digest = save_artifact(sample(), folder_);
  ASSERT_TRUE(digest) << digest.message();
  EXPECT_EQ(*digest, sha256_hex(sample().binary));
  const Result<Artifact> loaded = load_artifact(folder_, *digest);
  ASSERT_TRUE(loaded) << loaded.message();
  EXPECT_EQ(loaded->binary, sample().binary);
  Manifest expected = sample().manifest;
  expected.digest = *digest;
  EXPECT_EQ(loaded->manifest.to_json(), expected.to_json());
  EXPECT_EQ(loaded->manifest.args[0].shape, (std::vector<int64_t>{2, 3}));
}

Artifact sample_cubin(int64_t blocks) {
  Artifact a = sample();
  a.manifest.kind = binary_kind::kCubin;
  a.manifest.target = "cuda -arch=sm_90a";
  a.manifest.args.push_back({"B.packed", BufferRole::kPacked, DType::kInt8, {8}, "", 8});
  a.manifest.workspaces = {1024};
  a.manifest.abi_version = 2;
  a.manifest.pack_args.push_back(a.manifest.args.back());
  a.manifest.pack_launches = {{.kernel = "matmul_pack", .block = {8, 1, 1}, .params = {0, 1}}};
  a.manifest.launches = {{.kernel = "matmul",
                          .grid = {blocks, 2, 1},
                          .block = {128, 1, 1},
                          .shared_bytes = 4096,
                          .params = {0, 2, 1},
                          .registers = 64,
                          .spill_bytes = 8,
                          .stack_bytes = 16,
                          .blocks_per_sm = 5}};
  return a;
}

TEST_F(ArtifactFiles, CubinRoundTripWithItsLaunches) {
  const Result<std::string> digest = save_artifact(sample_cubin(3), folder_);
  ASSERT_TRUE(digest) << digest.message();
  EXPECT_TRUE(fs::exists(folder_ + "/" + *digest + ".cubin"));
  const Result<Artifact> loaded = load_artifact(folder_, *digest);
  ASSERT_TRUE(loaded) << loaded.message();
  Manifest expected = sample_cubin(3).manifest;
  expected.digest = *digest;
  EXPECT_EQ(loaded->manifest.to_json(), expected.to_json());
  EXPECT_EQ(loaded->manifest.launches[0].params, (std::vector<int>{0, 2, 1}));
}

TEST_F(ArtifactFiles, TheSameCubinLaunchedOtherwiseIsAnotherArtifact) {
  const Result<std::string> three = save_artifact(sample_cubin(3), folder_),
                            four = save_artifact(sample_cubin(4), folder_);
  ASSERT_TRUE(three && four);
  EXPECT_NE(*three, *four);
  EXPECT_EQ(load_artifact(folder_, *four)->manifest.launches[0].grid[0], 4);
}

TEST(ManifestRoles, AreTheWordsOfTheCInterfaceAndNoOthers) {
  const auto with_role = [](const char* role) {
    std::string text = sample_cubin(1).manifest.to_json();
    const std::string was = "\"role\":\"output\"";
    CHECK(text.find(was) != std::string::npos) << text;
    return parse_manifest(text.replace(text.find(was), was.size(), str("\"role\":\"", role, "\"")));
  };
  for (const char* role : {"input", "constant", "packed", "output", "inout"}) {
    const Result<Manifest> manifest = with_role(role);
    ASSERT_TRUE(manifest) << manifest.message();
    EXPECT_EQ(buffer_role_name(manifest->args[1].role), role);
  }
  for (const char* role : {"intermediate", "sideways", ""})
    EXPECT_EQ(with_role(role).message(),
              str("manifest: args[1].role: argument C has unknown role \"", role, "\""));
}

TEST(ManifestOfACubin, RefusesWhatNoGpuLaunches) {
  const auto refused = [](auto change) {
    Artifact a = sample_cubin(1);
    change(a.manifest);
    return parse_manifest(a.manifest.to_json()).message();
  };
  EXPECT_EQ(refused([](Manifest& m) {
              m.launches[0].block = {1024, 2, 1};
            }),
            "manifest: launches[0].grid, block: found [1,2,1], [1024,2,1], beyond what a GPU launches");
  EXPECT_EQ(refused([](Manifest& m) { m.launches[0].params = {4}; }),
            "manifest: launches[0].params: found 4, there are 3 arguments and 1 workspaces");
  EXPECT_EQ(refused([](Manifest& m) { m.launches.clear(); }),
            "manifest: launches: expected a list of at least one launch");
  EXPECT_EQ(refused([](Manifest& m) { m.pack_launches[0].params = {2}; }),
            "manifest: pack_launches[0].params: found 2, there are 2 arguments and 0 workspaces");
  EXPECT_EQ(refused([](Manifest& m) { m.pack_launches.clear(); }),
            "manifest: pack_launches: found 0 for 2 pack_args");
  EXPECT_EQ(refused([](Manifest& m) { m.args.pop_back(); }),
            "manifest: pack_args: B.packed is no packed argument of the kernel");
}

// With a map of an argument of 8 bytes [8] and one of the workspace of 1024.
Artifact mapped_cubin() {
  Artifact a = sample_cubin(1);
  a.manifest.abi_version = 3;
  a.manifest.workspaces = {1024};
  TensorMap tiled{.dtype = DType::kFloat16, .extents = {64, 8}, .strides = {128}, .box = {64, 4}};
  tiled.swizzle_bytes = 128, tiled.l2_bytes = 256;
  TensorMap pixels{.kind = TensorMap::Kind::kIm2col, .dtype = DType::kFloat32, .extents = {4, 5, 6, 2}};
  pixels.strides = {16, 80, 480}, pixels.steps = {1, 2, 2, 1}, pixels.lower = {-1, -2}, pixels.upper = {1, 2};
  pixels.channels = 4, pixels.pixels = 32, pixels.fills_nan = true;
  a.manifest.launches[0].tensor_maps = {{.operand = 3, .map = tiled}, {.operand = 3, .map = pixels}};
  return a;
}

TEST_F(ArtifactFiles, TensorMapsComeBackAsTheyWere) {
  const Result<std::string> digest = save_artifact(mapped_cubin(), folder_);
  ASSERT_TRUE(digest) << digest.message();
  const Result<Artifact> loaded = load_artifact(folder_, *digest);
  ASSERT_TRUE(loaded) << loaded.message();
  const std::vector<LaunchTensorMap> expected = mapped_cubin().manifest.launches[0].tensor_maps;
  ASSERT_EQ(loaded->manifest.launches[0].tensor_maps.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(loaded->manifest.launches[0].tensor_maps[i].operand, expected[i].operand);
    EXPECT_EQ(loaded->manifest.launches[0].tensor_maps[i].map, expected[i].map);
  }
  // Artifacts without maps are those that older programs wrote.
  EXPECT_EQ(sample_cubin(3).manifest.to_json().find("tensor_maps"), std::string::npos);
}

TEST(ManifestOfACubin, RefusesTensorMapsThatNoDriverTakes) {
  const auto refused = [](auto change) {
    Artifact a = mapped_cubin();
    change(a.manifest.launches[0].tensor_maps[0]);
    return parse_manifest(a.manifest.to_json()).message();
  };
  EXPECT_EQ(refused([](LaunchTensorMap&) {}), "");
  EXPECT_EQ(refused([](LaunchTensorMap& m) { m.operand = 4; }),
            "manifest: launches[0].tensor_maps[0].operand: found 4, there are 4 operands");
  EXPECT_EQ(
      refused([](LaunchTensorMap& m) { m.map.strides = {120}; }),
      "manifest: launches[0].tensor_maps[0].extents, strides, box: tensor map: strides[0] is 120, expected "
      "a multiple of 16");
  // It would have the device read what is not the operand's.
  EXPECT_EQ(
      refused([](LaunchTensorMap& m) {
        m.map.extents = {64, 9};
      }),
      "manifest: launches[0].tensor_maps[0].extents, strides, box: tensor map: it reaches over 1152 bytes "
      "of an array of 1024");
  EXPECT_EQ(
      refused([](LaunchTensorMap& m) {
        m.map.extents = {64, int64_t{1} << 32}, m.map.strides = {int64_t{1} << 39};
      }),
      "manifest: launches[0].tensor_maps[0].extents, strides, box: tensor map: it reaches over more than "
      "2^62 bytes of an array of 1024");
  Artifact a = mapped_cubin();
  std::string text = a.manifest.to_json();
  text.replace(text.find("\"tiled\""), 7, "\"other\"");
  EXPECT_EQ(parse_manifest(text).message(),
            "manifest: launches[0].tensor_maps[0].kind: expected \"tiled\" or \"im2col\", found \"other\"");
}

TEST_F(ArtifactFiles, SavingTwiceIsSavingOnce) {
  const Result<std::string> first = save_artifact(sample(), folder_),
                            second = save_artifact(sample(), folder_);
  ASSERT_TRUE(first) << first.message();
  ASSERT_TRUE(second) << second.message();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()),
            2);  // no temporary file is left
}

// Field by field, as programs of other releases read it.
TEST(Manifest, IsWrittenFieldByField) {
  Manifest m = sample_cubin(3).manifest;
  EXPECT_EQ(sample().manifest.to_json(),
            R"({"abi_version":1,"args":[)"
            R"({"bytes":24,"dtype":"float32","layout":"","name":"A","role":"input","shape":[2,3]},)"
            R"({"bytes":8,"dtype":"float64","layout":"scalar","name":"C","role":"output","shape":[]}],)"
            R"("digest":"","entry":"matmul","pack_args":[)"
            R"({"bytes":5,"dtype":"int8","layout":"","name":"B","role":"constant","shape":[5]}],)"
            R"("pack_entry":"matmul_pack","target":"llvm -mcpu=haswell -threads=2","threads":2,)"
            R"("toolchain":"llvm 22.1.8 codegen 1","workspace_bytes":128,"workspace_bytes_per_thread":64})");
  const std::string text = m.to_json();
  EXPECT_THAT(text, HasSubstr(R"("launches":[{"block":[128,1,1],"blocks_per_sm":5,"grid":[3,2,1],)"
                              R"("kernel":"matmul","params":[0,2,1],"registers":64,"shared_bytes":4096,)"
                              R"("spill_bytes":8,"stack_bytes":16}])"));
  EXPECT_THAT(text, HasSubstr(R"("workspaces":[1024])"));
  const Result<Manifest> read = parse_manifest(text);
  ASSERT_TRUE(read) << read.message();
  const LaunchInfo& launch = read->launches.at(0);
  EXPECT_EQ(launch.registers, 64);
  EXPECT_EQ(launch.spill_bytes, 8);
  EXPECT_EQ(launch.stack_bytes, 16);
  EXPECT_EQ(launch.blocks_per_sm, 5);
  EXPECT_EQ(launch.shared_bytes, 4096);
  EXPECT_EQ(read->workspace_bytes, 128);
  EXPECT_EQ(read->workspace_bytes_per_thread, 64);
}

// The right binary with the manifest of another one, and a manifest that was changed.
TEST_F(ArtifactFiles, AManifestOfAnotherArtifactIsRefused) {
  Artifact other = sample();
  other.binary += "more";
  const Result<std::string> digest = save_artifact(sample(), folder_), second = save_artifact(other, folder_);
  ASSERT_TRUE(digest && second);
  fs::copy_file(folder_ + "/" + *second + ".json", folder_ + "/" + *digest + ".json",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(load_artifact(folder_, *digest).message(), HasSubstr("the artifact is damaged"));

  const Result<std::string> cubin = save_artifact(sample_cubin(3), folder_);
  ASSERT_TRUE(cubin) << cubin.message();
  std::ifstream in(folder_ + "/" + *cubin + ".json");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("[3,2,1]"), 7, "[4,2,1]");
  std::ofstream(folder_ + "/" + *cubin + ".json") << text;
  EXPECT_THAT(load_artifact(folder_, *cubin).message(), HasSubstr("the artifact is damaged"));
}

// A torso of a power loss, which nobody has looked at: a cache writes over it, a store believes what is
// there.
TEST_F(ArtifactFiles, ACacheWritesOverATorso) {
  const Result<std::string> digest = save_artifact(sample(), folder_);
  ASSERT_TRUE(digest) << digest.message();
  for (const std::string& file : artifact_files(folder_, *digest)) fs::resize_file(file, 7);
  EXPECT_FALSE(load_artifact(folder_, *digest));
  ASSERT_TRUE(save_artifact(sample(), folder_, Durability::kCached));
  EXPECT_TRUE(load_artifact(folder_, *digest)) << load_artifact(folder_, *digest).message();
}

TEST_F(ArtifactFiles, RemovingTakesBothFilesOfEitherKind) {
  for (const Artifact& a : {sample(), sample_cubin(2)}) {
    const Result<std::string> digest = save_artifact(a, folder_);
    ASSERT_TRUE(digest) << digest.message();
    remove_artifact(folder_, *digest);
    EXPECT_TRUE(fs::is_empty(folder_));
  }
}

TEST(ArtifactBlob, ComesBackWholeAndOtherwiseIsRefused) {
  for (const Artifact& a : {sample(), sample_cubin(2)}) {
    const std::string blob = artifact_blob(a);
    const Result<Artifact> back = parse_artifact_blob(blob);
    ASSERT_TRUE(back) << back.message();
    EXPECT_EQ(back->binary, a.binary);
    EXPECT_EQ(back->manifest.entry, "matmul");
    EXPECT_THAT(parse_artifact_blob(blob + "x").message(), HasSubstr("artifact: digest is "));
    EXPECT_THAT(parse_artifact_blob(blob.substr(0, blob.find('\n'))).message(),
                HasSubstr("without a newline"));
  }
}

TEST_F(ArtifactFiles, DamageIsRefused) {
  const Result<std::string> digest = save_artifact(sample(), folder_);
  ASSERT_TRUE(digest) << digest.message();
  std::ofstream(folder_ + "/" + *digest + ".so", std::ios::app) << "x";
  const Result<Artifact> loaded = load_artifact(folder_, *digest);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.message(), HasSubstr("the artifact is damaged"));
}

TEST_F(ArtifactFiles, MissingAndMalformedNames) {
  const std::string unknown(64, 'a');
  EXPECT_EQ(load_artifact(folder_, unknown).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(load_artifact(folder_, "../../etc/passwd").status().code(), StatusCode::kInvalidArgument);
}

TEST(Manifest, ErrorsNameTheKey) {
  std::string json = sample().manifest.to_json();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    const size_t at = changed.find(from);
    CHECK(at != std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  EXPECT_TRUE(parse_manifest(json)) << parse_manifest(json).message();
  EXPECT_TRUE(parse_manifest(with("{\"abi", "{\"later_key\":1,\"abi")));
  EXPECT_EQ(parse_manifest("[]").message(), "manifest: expected a JSON object, found []");
  EXPECT_EQ(parse_manifest(with("\"threads\":2", "\"threads\":\"2\"")).message(),
            "manifest: threads: expected an integer from 1 to 2147483647, found \"2\".");
  EXPECT_EQ(parse_manifest(with("\"threads\":2,", "")).message(),
            "manifest: threads: expected a value, found nothing.");
  EXPECT_EQ(parse_manifest(with("float64", "float65")).message(),
            "manifest: args[1].dtype: unknown type float65");
  EXPECT_EQ(parse_manifest(with("\"bytes\":24", "\"bytes\":23")).message(),
            "manifest: args[0].bytes: found 23, expected 6 elements of float32");
  EXPECT_THAT(parse_manifest(with("\"abi_version\":1", "\"abi_version\":7")).message(),
              HasSubstr("expected 1 to 4, found 7"));
  EXPECT_THAT(parse_manifest(with("[2,3]", "[2,-3]")).message(), HasSubstr("expected integers >= 0"));
}

TEST(KernelLoad, WhatIsNotASharedObjectIsRefused) {
  const Result<Kernel> kernel = Kernel::load(sample());
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.message(), HasSubstr("cannot load"));
}

class AnyLoader final : public KernelLoader {
 public:
  std::string_view kind() const override { return "any"; }
  Result<LoadedKernel> load(const std::string& /*path*/, const Manifest& /*manifest*/) const override {
    return LoadedKernel{.entry = [](void* const*, const tuner_runtime*) { return int32_t{-2}; }};
  }
};
const AnyLoader kAnyLoader;
const RegisterKernelLoader kAnyRegistered(kAnyLoader);

// 128 bytes of the call and 64 of each thread, as sample() says.
TEST(KernelLoad, SaysWhatWorkspaceACallNeedsAndWhyItRefuses) {
  Manifest manifest = sample().manifest;
  manifest.kind = "any";
  const Result<Kernel> kernel = Kernel::load_file("none", manifest);
  ASSERT_TRUE(kernel) << kernel.message();
  EXPECT_EQ(kernel->workspace_bytes(1), 192);
  EXPECT_EQ(kernel->workspace_bytes(3), 320);
  EXPECT_EQ(kernel->call(nullptr, {}).message(), "matmul: returned -2 (no workspace given)");
}

// An ELF file by the words of its standard: a head, a section of code, one of data, one of code that takes no
// room in the file.
TEST(CodeBytes, AreThoseOfSectionsThatMayBeExecuted) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident,
              "\x7f"
              "ELF",
              4);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_shoff = sizeof head;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 4;
  Elf64_Shdr code{}, more{}, data{}, none{};
  code.sh_type = more.sh_type = data.sh_type = SHT_PROGBITS;
  none.sh_type = SHT_NOBITS;
  code.sh_flags = none.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  more.sh_flags = SHF_EXECINSTR;
  data.sh_flags = SHF_ALLOC | SHF_WRITE;
  code.sh_size = 48, more.sh_size = 16, data.sh_size = 100, none.sh_size = 1000;
  std::string file(reinterpret_cast<const char*>(&head), sizeof head);
  for (const Elf64_Shdr& s : {code, data, none, more})
    file.append(reinterpret_cast<const char*>(&s), sizeof s);
  file.append(164, '\0');
  EXPECT_EQ(code_bytes(file), 48 + 16);
  EXPECT_EQ(code_bytes(file.substr(0, sizeof head + 100)), 0) << "its sections lie behind its end";
  EXPECT_EQ(code_bytes("\x7f"
                       "ELF"),
            0);
  EXPECT_EQ(code_bytes(""), 0);
}

TEST(Sha256, KnownValue) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace tuner
