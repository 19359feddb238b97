// Cubins and compiler logs are read without tools of CUDA; damaged ones are errors, never crashes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "compiler_core/codegen_cuda/cubin_cache.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "tests/random_seed.h"

namespace tuner::testing {
namespace {

// A little ELF file with the sections of a cubin, written by hand.
class CubinWriter {
 public:
  CubinWriter() { section("", 0, "", 0); }
  void section(const std::string& name, uint32_t type, const std::string& bytes, uint32_t link) {
    sections_.push_back({static_cast<uint32_t>(names_.size()), type, bytes, link});
    names_ += name + '\0';
  }
  std::string finish() {
    section(".shstrtab", 3, "", 0);
    sections_.back().bytes = names_;
    std::string file(
        "\x7f"
        "ELF\x02\x01\x01",
        7);
    file.resize(64, '\0');
    put<uint16_t>(file, 18, 190);
    put<uint16_t>(file, 58, 64);
    put<uint16_t>(file, 60, static_cast<uint16_t>(sections_.size()));
    put<uint16_t>(file, 62, static_cast<uint16_t>(sections_.size() - 1));
    std::string headers;
    for (const Section& s : sections_) {
      std::string header(64, '\0');
      put<uint32_t>(header, 0, s.name);
      put<uint32_t>(header, 4, s.type);
      put<uint64_t>(header, 24, file.size());
      put<uint64_t>(header, 32, s.bytes.size());
      put<uint32_t>(header, 40, s.link);
      file += s.bytes;
      headers += header;
    }
    put<uint64_t>(file, 40, file.size());
    return file + headers;
  }
  template <class T>
  static void put(std::string& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }

 private:
  struct Section {
    uint32_t name, type;
    std::string bytes;
    uint32_t link;
  };
  std::vector<Section> sections_;
  std::string names_;
};

std::string words(std::initializer_list<uint32_t> values) {
  std::string bytes;
  for (const uint32_t v : values) bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  return bytes;
}
// An attribute that has its value behind it.
std::string attribute(uint8_t kind, const std::string& payload) {
  const char head[] = {4, static_cast<char>(kind), static_cast<char>(payload.size()), 0};
  return std::string(head, 4) + payload;
}

// One kernel "relu": 14 registers, 8 bytes of stack, 2 barriers, at most 16 x 8 threads.
std::string small_cubin() {
  CubinWriter w;
  const std::string names("\0relu\0", 6);
  std::string symbols(48, '\0');
  CubinWriter::put<uint32_t>(symbols, 24, 1);
  w.section(".strtab", 3, names, 0);    // 1
  w.section(".symtab", 2, symbols, 1);  // 2
  w.section(".nv.info", 0x70000000, attribute(0x2f, words({1, 14})) + attribute(0x11, words({1, 8})), 2);
  w.section(".nv.info.relu", 0x70000000,
            attribute(0x05, words({16, 8, 1})) + std::string("\x02\x4c\x02\x00", 4), 2);
  w.section(".nv.shared.relu", 1, std::string(48, '\0'), 0);
  return w.finish();
}

TEST(CodegenCudaCubin, ReadsWhatTheCompilerWrote) {
  const auto kernels = read_cubin(small_cubin());
  ASSERT_TRUE(kernels.is_ok()) << kernels.message();
  ASSERT_EQ(kernels->size(), 1u);
  const CubinKernel& k = kernels->front();
  EXPECT_EQ(k.name, "relu");
  EXPECT_EQ(k.registers, 14);
  EXPECT_EQ(k.stack_bytes, 8);
  EXPECT_EQ(k.barriers, 2);
  EXPECT_EQ(k.max_threads, 128);
  EXPECT_EQ(k.static_shared_bytes, 48);
}

TEST(CodegenCudaCubin, RefusesOtherFilesNamingTheOffset) {
  EXPECT_EQ(read_cubin("").message(), "cubin: offset 0: not a 64-bit little-endian ELF file");
  std::string elf = small_cubin();
  CubinWriter::put<uint16_t>(elf, 18, 62);  // x86-64
  EXPECT_EQ(read_cubin(elf).message(), "cubin: offset 18: an ELF file, but not for a CUDA device");
}

// Of a word that stands once, replaced by another one of its length.
TEST(CodegenCudaCubin, RefusesAttributesThatAreNone) {
  const auto with = [](const std::string& there, const std::string& instead) {
    std::string elf = small_cubin();
    elf.replace(elf.find(there), there.size(), instead);
    return read_cubin(elf).message();
  };
  const std::string registers = attribute(0x2f, words({1, 14}));
  EXPECT_EQ(with(registers, "\x05" + registers.substr(1)), "cubin: .nv.info: offset 0: not an attribute");
  EXPECT_EQ(with(registers, std::string(1, '\0') + registers.substr(1)),
            "cubin: .nv.info: offset 0: not an attribute");
  EXPECT_EQ(with(registers, attribute(0x2f, words({1, (1u << 30) + 1}))),
            "cubin: .nv.info: relu: found 1073741825 registers or bytes");
  EXPECT_EQ(with(registers, attribute(0x2f, words({2, 14}))),
            "cubin: .nv.info: names symbol 2, which is not there");
}

TEST(CodegenCudaCubin, EveryTruncationIsAnErrorOrTheWhole) {
  const std::string whole = small_cubin();
  for (size_t n = 0; n < whole.size(); ++n) {
    const auto kernels = read_cubin(whole.substr(0, n));
    ASSERT_FALSE(kernels.is_ok()) << n << " bytes";
    ASSERT_EQ(kernels.status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(CodegenCudaCubin, FlippedBitsNeverCrash) {
  const std::string whole = small_cubin();
  const RandomSeed seed(20261121);
  std::mt19937_64 rng(seed);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (int flips = 1 + static_cast<int>(rng() % 4); flips > 0; --flips) {
      char& damaged = bytes[rng() % bytes.size()];
      damaged = static_cast<char>(damaged ^ (1 << (rng() % 8)));
    }
    const auto kernels = read_cubin(bytes);
    refused += kernels.is_ok() ? 0 : 1;
    if (!kernels) continue;
    for (const CubinKernel& k : *kernels) ASSERT_GE(k.registers, 0);
  }
  EXPECT_GT(refused, 1000) << "damage goes unseen";
}

constexpr const char* kLog = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'matmul' for 'sm_90a'
ptxas info    : Function properties for matmul
ptxas         .     760 bytes stack frame, 2448 bytes spill stores, 2404 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 760 bytes cumulative stack size
ptxas info    : Compile time = 354.123 ms
ptxas info    : Compiling entry function 'relu' for 'sm_90a'
ptxas info    : Function properties for relu
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 0 barriers
)";

TEST(CodegenCudaLog, ReportsEachKernel) {
  const std::vector<CompilerReport> reports = parse_compiler_log(kLog);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].kernel, "matmul");
  EXPECT_EQ(reports[0].registers, 255);
  EXPECT_EQ(reports[0].spill_store_bytes, 2448);
  EXPECT_EQ(reports[0].spill_load_bytes, 2404);
  EXPECT_EQ(reports[0].stack_bytes, 760);
  EXPECT_EQ(reports[1].kernel, "relu");
  EXPECT_EQ(reports[1].registers, 14);
  EXPECT_EQ(reports[1].spill_store_bytes, 0);
}

TEST(CubinCache, KeysTellSourceOptionsAndCompilerApart) {
  const std::vector<std::string> options = {"--fmad=true", "-arch=sm_80"};
  const std::string key = cuda::cache_key("text", options, {12, 8});
  EXPECT_EQ(cuda::cache_key("text", options, {12, 8}), key);
  const std::set<std::string> keys = {
      key,
      cuda::cache_key("other", options, {12, 8}),
      cuda::cache_key("text", {"--fmad=true", "-arch=sm_90"}, {12, 8}),
      cuda::cache_key("text", {"--fmad=true"}, {12, 8}),
      cuda::cache_key("text", {"--fmad=true", "-arch=sm_80", "--define-macro=TUNER_TRAP_NS=1"}, {12, 8}),
      cuda::cache_key("text", options, {12, 9}),
      cuda::cache_key("text", options, {13, 8}),
  };
  EXPECT_EQ(keys.size(), 7u);
}

TEST(CodegenCudaLog, AnyTextIsRead) {
  EXPECT_TRUE(parse_compiler_log("").empty());
  const std::string log = kLog;
  const RandomSeed seed(7);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string text = log.substr(0, rng() % log.size());
    for (int flips = 0; flips < 4 && !text.empty(); ++flips) {
      char& damaged = text[rng() % text.size()];
      damaged = static_cast<char>(damaged ^ (1 << (rng() % 8)));
    }
    EXPECT_LE(parse_compiler_log(text).size(), 2u);
  }
}

}  // namespace
}  // namespace tuner::testing
