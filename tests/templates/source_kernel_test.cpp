// Kernels as job files describe them: what is read, what is refused and in which words, what travels, and
// what a digest tells apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "templates/source_kernel/flag_rule.h"
#include "templates/source_kernel/source_document.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Files final : public JobFolder {
 public:
  std::map<std::string, std::string> texts;
  bool has(const std::string& name) const override { return texts.contains(name); }
  Result<std::string> read(const std::string& name, size_t most) const override {
    if (!texts.contains(name)) return invalid_argument(name, ": cannot be read: No such file or directory");
    if (texts.at(name).size() > most) return invalid_argument(name, ": is longer than ", most, " bytes");
    return texts.at(name);
  }
};

Files stencil_files() {
  Files files;
  files.texts["stencil.c"] =
      "#include <stdint.h>\n#include \"inner/tile.h\"\nvoid stencil(const float* in, float* out, int n) {}\n";
  files.texts["inner/tile.h"] = "#include \"more.h\"\n#define T TILE\n";
  files.texts["inner/more.h"] = "#pragma once\n";
  files.texts["plain.c"] = "#include \"inner/more.h\"\nvoid plain(const float* in, float* out, int n) {}\n";
  files.texts["start.npy"] = std::string("\x93NUMPY\0raw", 10);
  return files;
}

json stencil() {
  return json::parse(R"({
    "op": "kernel", "source": "stencil.c", "function": "stencil",
    "sizes": {"height": 30, "width": 40},
    "arguments": [
      {"name": "in", "type": "float32", "shape": ["height + 2", "(width + 2) * 1"], "contents": {"from": 0, "to": 2}},
      {"name": "out", "type": "float32", "shape": ["height", 40], "role": "out", "tolerance": {"absolute": 0.001}},
      {"name": "n", "type": "int32", "value": "width // 2"},
      {"name": "alpha", "type": "float64", "value": 0.25}],
    "knobs": {"TILE": [8, 2, 4], "BLOCK": {"from": 8, "to": 32, "step": 8}, "UNROLL": {"from": 1, "to": 8, "powers_of": 2},
              "ORDER": ["rows", "columns"], "SCALE": [0.5, 1]},
    "constraints": ["TILE * UNROLL <= 16", "ORDER == 'rows' or BLOCK % TILE == 0"],
    "default": {"UNROLL": 2},
    "flags": ["-O3", "-DN={width}", "-DORDER_{ORDER}=1"],
    "flops": "5 * height * width", "bytes": "8 * height * width",
    "reference": {"source": "plain.c", "function": "plain"}
  })");
}

Result<std::shared_ptr<const SourceKernel>> read(const json& entry, const Files& files = stencil_files()) {
  json_input::Reader in(entry, "job.json: ");
  in.get("op");
  std::shared_ptr<const SourceKernel> kernel = read_source_kernel(in, files);
  RETURN_IF_ERROR(in.finish());
  return kernel;
}

TEST(SourceKernel, AnEntryIsReadAsItsKeysSay) {
  const auto read_one = read(stencil());
  ASSERT_TRUE(read_one.is_ok()) << read_one.message();
  const SourceKernel& k = **read_one;
  EXPECT_EQ(k.arguments[0].shape, (std::vector<int64_t>{32, 42}));
  EXPECT_EQ(k.arguments[0].contents.high, 2);
  EXPECT_EQ(k.arguments[0].absolute, 1e-4);
  EXPECT_EQ(k.arguments[1].role, SourceRole::kOut);
  EXPECT_EQ(k.arguments[1].absolute, 0.001);
  EXPECT_EQ(k.arguments[1].relative, 0);
  EXPECT_EQ(k.arguments[2].integer, 20);
  EXPECT_EQ(k.arguments[3].number, 0.25);
  EXPECT_EQ(k.flops, 5 * 30 * 40);
  std::vector<std::string> names;
  for (const SourceFile& file : k.files) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("inner/more.h", "inner/tile.h", "plain.c", "stencil.c"));
  ConfigSpace space;
  ASSERT_TRUE(k.declare(space).is_ok());
  ASSERT_TRUE(space.seal().is_ok());
  // Counted by hand: TILE * UNROLL <= 16 leaves (2: 1 2 4 8) (4: 1 2 4) (8: 1 2), 9 pairs. `columns` asks
  // that TILE divides BLOCK, which 2, 4 and 8 all do. Four BLOCKs, two ORDERs, two SCALEs.
  EXPECT_EQ(space.size(), 9u * 4 * 2 * 2);
  const Config first = space.at(space.default_index());
  EXPECT_EQ(space.describe(first), "BLOCK=8 ORDER=rows SCALE=0.5 TILE=8 UNROLL=2");
  EXPECT_THAT(k.definitions(first),
              ElementsAre("-DBLOCK=8", "-DORDER=rows", "-DSCALE=0.5", "-DTILE=8", "-DUNROLL=2"));
  EXPECT_THAT(k.flags_of(first), ElementsAre("-O3", "-DN=40", "-DORDER_rows=1"));
}

// Each row changes one thing.
TEST(SourceKernel, WhatIsWrongIsOneLineWithItsKey) {
  const json whole = stencil();
  const struct {
    const char *at, *value, *message;
  } cases[] = {
      {"/language", "\"fortran\"",
       R"(language: expected "c", "c++", "cuda", "ptx", "cubin" or "command", found "fortran".)"},
      {"/source", "\"none.c\"", "source: none.c: cannot be read"},
      {"/source", "\"/etc/passwd\"",
       R"(source: "/etc/passwd" is an absolute path; expected a file of the job file's folder)"},
      {"/source", "\"../up.c\"", R"("../up.c" leads out of the folder)"},
      {"/source", "\"a//b.c\"", "has an empty part"},
      {"/source", "\"a\\u001b[2J.c\"", R"("a\x1b[2J.c" has characters that are no text)"},
      {"/source", "7", "source: expected"},
      {"/function", "\"2d\"",
       R"(function: expected a name for C: letters, digits and underscores, starting with a letter, found "2d")"},
      {"/function", "\"while\"", "is a keyword of C or C++"},
      {"/function", "\"f(); system\"", "function: expected a name for C"},
      {"/sizes/height", "-1", "sizes.height: expected an integer from 0 to 2^40, found -1."},
      {"/sizes/height", "\"8\"", "sizes.height: expected an integer"},
      {"/sizes/a b", "1", "sizes.a b: expected a name for C"},
      {"/sizes/height", "0", "arguments[1] (out): shape: expected extents of at least 1, found 0"},
      {"/sizes/height", "1099511627776", "arguments[0] (in): shape: the buffer is larger than 2^40 bytes"},
      {"/arguments", "[]", "arguments: expected 1 to 64, found 0"},
      {"/arguments", "{}", "arguments: expected a list"},
      {"/arguments/0", "3", "arguments[0]: expected an object, found 3."},
      {"/arguments/0/type", "\"float\"", "arguments[0]: type: expected one of bool, int8"},
      {"/arguments/0/shape/0", "\"hight + 2\"",
       "column 1: unknown name hight; known are the sizes height, width; found \"hight + 2\"."},
      {"/arguments/0/shape/0", "\"height // (width - 40)\"", "column 8: division by zero"},
      {"/arguments/0/shape/0", "\"height ** 20\"", "the value does not fit 64 bits"},
      {"/arguments/0/shape/0", "1.5", "expected an integer or an expression in quotes"},
      {"/arguments/0/shape", "[1,1,1,1,1,1,1,1,1]", "expected a list of 1 to 8 extents"},
      {"/arguments/0/role", "\"output\"", R"(role: expected "in", "out" or "inout", found "output".)"},
      {"/arguments/0/name", "\"out\"", "arguments: the name is taken"},
      {"/arguments/0/name", "\"TILE\"", "the name is taken"},
      {"/arguments/0/name", "\"int\"", "is a keyword"},
      {"/arguments/0/contents", "\"ones\"", "contents: expected \"random\", \"zeros\", \"iota\""},
      {"/arguments/0/contents", "{\"from\": 2, \"to\": 1}", "contents: expected from <= to"},
      {"/arguments/0/contents", "\"gone.npy\"", "arguments: gone.npy: cannot be read"},
      {"/arguments/0/tolerance", "{\"absolute\": 1}", "tolerance: is of outputs"},
      {"/arguments/1/contents", "\"zeros\"", "contents: is of inputs"},
      {"/arguments/1/role", "\"in\"", "tolerance: is of outputs, and the role is \"in\"."},
      {"/arguments/1/tolerance/absolute", "-1", "tolerance.absolute: expected"},
      {"/arguments/2/value", "\"height * 1000000000\"", "30000000000 does not fit int32"},
      {"/arguments/2/shape", "[4]",
       "expected either \"shape\", of a buffer, or \"value\", of a scalar, found both."},
      {"/arguments/2/type", "\"float16\"", "a scalar is of bool, int8"},
      {"/arguments/2/vlaue", "3", "vlaue"},
      {"/knobs", "[1]", "knobs: expected an object"},
      {"/knobs/while", "[1, 2]", "knobs.while: \"while\" is a keyword of C or C++"},
      {"/knobs/stencil", "[1, 2]", "knobs.stencil: the name is taken"},
      {"/knobs/height", "[1, 2]", "knobs.height: the name is taken"},
      {"/knobs/min", "[1, 2]", "knobs.min: \"min\" is a function of expressions"},
      {"/knobs/TILE", "[]", "knobs.TILE: expected 1 to 4096 values, found 0."},
      {"/knobs/TILE", "[4, 4]", "knobs.TILE: the value 4 is there twice"},
      {"/knobs/TILE", "[true]", "expected integers, numbers or words, found true; write 0 and 1."},
      {"/knobs/TILE", "[18446744073709551615]", "knobs.TILE: expected integers of 64 bits"},
      {"/knobs/TILE", "{\"from\": 4, \"to\": 2}", "knobs.TILE.to: expected"},
      {"/knobs/TILE", "{\"from\": 1, \"to\": 100000}", "knobs.TILE: expected 1 to 4096 values, found more."},
      {"/knobs/TILE", "{\"from\": 5, \"to\": 7, \"powers_of\": 2}",
       "knobs.TILE: expected 1 to 4096 values, found none."},
      {"/knobs/TILE", "{\"from\": 1, \"to\": 8, \"step\": 2, \"powers_of\": 2}",
       "expected either this or \"step\""},
      {"/knobs/ORDER", R"(["a\"b"])",
       R"(knobs.ORDER: expected words of letters, digits, _ . + and -, found "a"b")"},
      {"/knobs/ORDER", "[\"1;system(0)\"]", "knobs.ORDER: expected words of letters"},
      {"/knobs/ORDER", "[\"a b\"]", "knobs.ORDER: expected words of letters"},
      {"/knobs/ORDER", "[\"columns\"]", "one of \"columns\"; found \"rows\""},
      {"/constraints/0", "\"TILE * UNROL <= 16\"",
       "constraints[0]: column 8: unknown name UNROL; in \"TILE * UNROL <= 16\""},
      {"/constraints/0", "\"TILE / UNROLL\"",
       "constraints[0]: column 6: expected // (a quotient rounded down), found /"},
      {"/constraints/0", "\"TILE % (UNROLL - 1) == 0\"", "the divisor may be 0"},
      {"/constraints/0", "\"TILE > 8\"", "knobs: "},
      {"/constraints/0", "7", "constraints[0]: expected an expression in quotes"},
      {"/default/TILE", "3", "default.TILE: expected a value of the knob, found 3."},
      {"/default/TILES", "4", "default.TILES: there is no knob of this name."},
      {"/default/UNROLL", "8", "default config"},
      {"/compiler", "\"/bin/sh\"", "compiler: expected a name such as \"cc\", found \"/bin/sh\""},
      {"/compiler", "\"cc -o x\"", "compiler: expected a name"},
      {"/flags/0", "\"-o\"", "flags[0]: the flag -o is not allowed"},
      {"/flags/0", "\"-fplugin=x.so\"", "flags[0]: the flag -fplugin=x.so is not allowed"},
      {"/flags/0", "\"@file\"", "is not allowed"},
      {"/flags/0", "\"-O{LEVEL}\"", "flags[0]: there is no knob and no size {LEVEL}"},
      {"/flags/0", "\"-O{TILE\"", "flags[0]: expected {NAME}, found a brace without its other"},
      {"/flags/0", "\"-f{ORDER}\"", "flags[0]: the flag -frows is not allowed"},
      {"/flops", "\"-1\"", "flops: expected at least 0, found -1."},
      {"/flops", "\"TILE\"", "flops: column 1: unknown name TILE"},
      {"/reference", "\"plain\"", "reference: expected \"default\""},
      {"/reference/source", "\"gone.c\"", "reference.source: gone.c: cannot be read"},
      {"/reference", "{\"function\": \"stencil\"}", "reference: the kernel is its own reference"},
      {"/reference", "{\"files\": {}}",
       "reference.files: expected a file for each output, found none for out"},
      {"/reference", "{\"files\": {\"out\": \"start.npy\", \"n\": \"start.npy\"}}",
       "reference.files: there is no output \"n\""},
      {"/sources", "\"a.c\"", "sources"},
  };
  ASSERT_TRUE(read(whole).is_ok());
  for (const auto& c : cases) {
    json entry = whole;
    entry[json::json_pointer(c.at)] = json::parse(c.value);
    const auto found = read(entry);
    ASSERT_FALSE(found.is_ok()) << c.at << " " << c.value;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(found.message(), HasSubstr(c.message)) << c.at << " " << c.value;
    EXPECT_EQ(found.message().find('\n'), std::string::npos) << found.message();
    EXPECT_TRUE(found.message().starts_with("job.json: ")) << found.message();
  }
}

TEST(SourceKernel, FilesStayInTheirFolderAndHaveAnEnd) {
  const struct {
    const char *name, *text, *message;
  } cases[] = {
      {"stencil.c", "#include \"/etc/passwd\"\n",
       "stencil.c:1: #include \"/etc/passwd\": \"/etc/passwd\" is an absolute path"},
      {"stencil.c", "\n#include \"../x.h\"\n",
       "stencil.c:2: #include \"../x.h\": \"../x.h\" leads out of the folder"},
      {"inner/more.h", "#include \"tile.h\"\n",
       "inner/tile.h includes inner/more.h includes inner/tile.h: a circle."},
      {"stencil.c", "#include \"stencil.c\"\n", "stencil.c includes stencil.c: a circle."},
  };
  for (const auto& c : cases) {
    Files files = stencil_files();
    files.texts[c.name] = c.text;
    const auto found = read(stencil(), files);
    ASSERT_FALSE(found.is_ok()) << c.text;
    EXPECT_THAT(found.message(), HasSubstr(c.message));
  }
  Files large = stencil_files();
  large.texts["stencil.c"] = std::string(10 << 20, ' ');
  EXPECT_THAT(read(stencil(), large).message(), HasSubstr("is longer than 1048576 bytes"));
  Files binary = stencil_files();
  binary.texts["stencil.c"] = std::string("int a;\0", 7);
  EXPECT_THAT(read(stencil(), binary).message(), HasSubstr("stencil.c is no text: it has a byte 0."));
  // Beside the file first, then from the job's folder; what is not there may be the compiler's own.
  Files found = stencil_files();
  found.texts["inner/more.h"] = "#include \"tile2.h\"\n#include \"stddef.h\"\n";
  found.texts["tile2.h"] = "";
  EXPECT_NE((*read(stencil(), found))->file("tile2.h"), nullptr);
}

TEST(SourceKernel, AFolderOfThisMachineHasNoWayOut) {
  const TemporaryFolder outside;
  std::ofstream(outside.file("secret.c")) << "int secret;";
  std::filesystem::create_directories(outside.path() / "job/inner");
  std::filesystem::create_symlink("../secret.c", outside.path() / "job/link.c");
  std::filesystem::create_symlink("../..", outside.path() / "job/inner/up");
  std::ofstream(outside.file("job/a.c")) << "int a;";
  const auto folder = job_folder(outside.file("job"));
  EXPECT_EQ(*folder->read("a.c", 100), "int a;");
  for (const char* name : {"link.c", "inner/up/secret.c"})
    EXPECT_THAT(folder->read(name, 100).message(), HasSubstr("leads out of the job file's folder by a link"))
        << name;
  EXPECT_THAT(folder->read("a.c", 3).message(), HasSubstr("a.c"));
  EXPECT_FALSE(folder->read("inner", 100).is_ok());
}

TEST(SourceKernel, FlagsThatOnlyOptimiseAreAllowed) {
  for (const char* flag : {"-O3",
                           "-Ofast",
                           "-march=native",
                           "-mavx512f",
                           "-mprefer-vector-width=512",
                           "-std=c++20",
                           "-std=gnu11",
                           "-funroll-loops",
                           "-fno-tree-vectorize",
                           "-ffast-math",
                           "-fopenmp",
                           "-fopenmp-simd",
                           "-ffp-contract=fast",
                           "-DA=1",
                           "-DB",
                           "-UB",
                           "-Wall",
                           "-Wno-unused",
                           "--param=max-unroll-times=4",
                           "-pthread",
                           "-lm",
                           "-fvect-cost-model=dynamic",
                           "-fschedule-insns2",
                           "-finline-limit=100",
                           "-fprefetch-loop-arrays",
                           "-fslp-vectorize",
                           "-fno-math-errno"})
    EXPECT_TRUE(check_flag(flag).is_ok()) << flag;
  for (const char* flag : {"",
                           "-o",
                           "-o/tmp/x",
                           "-oout",
                           "-I/etc",
                           "-include",
                           "-B/tmp",
                           "-wrapper",
                           "@file",
                           "-fplugin=a.so",
                           "-fplugin-arg-a-b=c",
                           "-specs=x",
                           "-Wl,-rpath,/",
                           "-Wp,-MD,x",
                           "-Wa,-a",
                           "-x",
                           "-E",
                           "-S",
                           "-M",
                           "-MD",
                           "-MF",
                           "-save-temps",
                           "-fdump-tree-all",
                           "-fprofile-generate",
                           "-fprofile-use=/etc/passwd",
                           "-fauto-profile",
                           "-fopt-info=x",
                           "-fsanitize=address",
                           "-fuse-ld=gold",
                           "-flto",
                           "-L/tmp",
                           "-l:x.a",
                           "-lc",
                           "-T",
                           "-Xlinker",
                           "-fstack-usage",
                           "-fcallgraph-info",
                           "-ftree-dump-x",
                           "-D1",
                           "-DA=\"b\"",
                           "-DA=$(x)",
                           "-DA=a;b",
                           "-O3 -o x",
                           "-std=c++20\n",
                           "stencil.c",
                           "-",
                           "--help",
                           "-fmodules-ts",
                           "-fdirectives-only",
                           "-iquote/etc",
                           "-isystem",
                           "-imacros",
                           "-idirafter",
                           "-mrecord-gcc-switches\x1b"})
    EXPECT_FALSE(check_flag(flag).is_ok()) << flag;
  EXPECT_FALSE(check_flag(std::string("-D") + std::string(1000, 'a')).is_ok());
}

// --- documents and digests ---

TEST(SourceKernel, ADocumentIsReadBackAsItWas) {
  const auto kernel = *read(stencil());
  const std::string document = source_document(*kernel);
  const auto back = parse_source_document(document);
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(source_document(**back), document);
  EXPECT_EQ(source_digest(**back), source_digest(*kernel));
  EXPECT_EQ((*back)->file("stencil.c")->text, stencil_files().texts["stencil.c"]);
}

TEST(SourceKernel, ADigestTellsApartWhatMayChangeAnAnswer) {
  const std::string plain = source_digest(**read(stencil()));
  Files spaced = stencil_files();
  spaced.texts["stencil.c"] =
      "/* a comment */\n#include <stdint.h>\n#include \"inner/tile.h\"\n\nvoid stencil( const float *in, "
      "float *out, int n ) { }";
  EXPECT_EQ(source_digest(**read(stencil(), spaced)), plain);
  for (const char* name : {"stencil.c", "inner/tile.h", "inner/more.h", "plain.c"}) {
    Files changed = stencil_files();
    changed.texts[name] += "int more;\n";
    EXPECT_NE(source_digest(**read(stencil(), changed)), plain) << name;
  }
  const std::pair<const char*, const char*> changes[] = {
      {"/sizes/width", "41"},
      {"/arguments/0/type", "\"float64\""},
      {"/arguments/0/contents", "\"zeros\""},
      {"/arguments/3/value", "0.5"},
      {"/arguments/1/tolerance", "{}"},
      {"/knobs/TILE", "[8, 2]"},
      {"/constraints/0", "\"TILE<2**9\""},
      {"/default/UNROLL", "1"},
      {"/flags/0", "\"-O2\""},
      {"/compiler", "\"clang\""},
      {"/language", "\"c++\""},
      {"/flops", "1"},
      {"/reference", "\"default\""},
  };
  std::set<std::string> all = {plain};
  for (const auto& [at, value] : changes) {
    json entry = stencil();
    entry[json::json_pointer(at)] = json::parse(value);
    const auto changed = read(entry);
    ASSERT_TRUE(changed.is_ok()) << at << ": " << changed.message();
    EXPECT_TRUE(all.insert(source_digest(**changed)).second) << at;
  }
}

// Documents come from clients and from files: whatever they say, they are refused in one line or are valid.
TEST(SourceKernel, DamagedDocumentsAreRefusedOrValid) {
  const std::string whole = source_document(**read(stencil()));
  for (size_t length = 0; length < whole.size(); length += 7)
    EXPECT_FALSE(parse_source_document(whole.substr(0, length)).is_ok()) << length;
  size_t refused = 0;
  Seeds seeds(81, 400);
  for (const uint32_t seed : seeds) {
    std::mt19937_64 rng(seed);
    std::string damaged = whole;
    for (uint64_t i = 0, count = 1 + rng() % 4; i < count; ++i) {
      const size_t at = rng() % damaged.size();
      switch (rng() % 3) {
        case 0:
          damaged[at] = static_cast<char>(rng());
          break;
        case 1:
          damaged.erase(at, 1 + rng() % 9);
          break;
        default:
          damaged.insert(at, std::string(1 + rng() % 3, "0123456789\"{}[],-"[rng() % 17]));
      }
    }
    const auto found = parse_source_document(damaged);
    if (!found) {
      ++refused;
      EXPECT_EQ(found.message().find('\n'), std::string::npos) << found.message();
    } else {
      EXPECT_TRUE(parse_source_document(source_document(**found)).is_ok());
    }
  }
  if (seeds.all()) {
    EXPECT_GT(refused, 200u);
  }
}

}  // namespace
}  // namespace tuner
