// Lock files as a team uses them: `tuner lock` writes one, `query`, `build` and `compile` obey it whatever
// their databases say, `--check` finds what has changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/db/resolve_fixture.h"
#include "tests/models/networks.h"
#include "tests/tuner/processes.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kOnHaswell[] = " --target 'llvm -mcpu=haswell -threads=1'";

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

// Alice and Bob have a database each, in which the same two tasks were tuned with other results.
class LockCli : public ResolveFixture {
 protected:
  void SetUp() override {
    write("job.json", str("[", kDense, ",", kWide, "]"));
    write("dense.json", kDense);
    write("wide.json", kWide);
    dense_ = configs(dense(), 3);
    wide_ = configs(wide(), 2);
    tuned(dense(), cpu_, {{dense_[0], 1000}, {dense_[1], 1500}});
    tuned(wide(), cpu_, {{wide_[0], 3000}, {wide_[1], 4000}});
    store_.reset();
    std::filesystem::rename(folder_.file("t.db"), folder_.file("alice.db"));
    open_new("t.db");
    tuned(dense(), cpu_, {{dense_[0], 1400}, {dense_[1], 1200}});
    tuned(wide(), cpu_, {{wide_[0], 3000}, {wide_[1], 2000}});
    store_.reset();
    std::filesystem::rename(folder_.file("t.db"), folder_.file("bob.db"));
  }
  void open_new(const std::string& name) {
    store_ = must_open(folder_.file(name));
    jobs_ = 0;
  }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_.file(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) const { return testing::read_text(folder_.file(name)); }
  Ended tuner(const std::string& arguments) const {
    const std::string line =
        str("cd ", folder_.path().string(), " && XDG_DATA_HOME=", folder_.path().string(), "/data ",
            TUNER_BIN_DIR, "/tuner ", arguments, " >out.txt 2>err.txt </dev/null");
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out.txt"), read("err.txt")};
  }
  Ended done(const std::string& arguments) const {
    Ended ended = tuner(arguments);
    EXPECT_EQ(ended.exit_code, 0) << arguments << "\n" << ended.out << ended.err;
    return ended;
  }
  // Refused with one line.
  std::string refused(const std::string& arguments, int exit_code = 1) const {
    const Ended ended = tuner(arguments);
    EXPECT_EQ(ended.exit_code, exit_code) << arguments << "\n" << ended.out << ended.err;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_EQ(ended.out, "") << arguments;
    return ended.err;
  }
  // Each file of a folder and its bytes.
  std::map<std::string, std::string> tree(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.file(name)))
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), folder_.file(name)).string()] =
            testing::read_text(entry.path().string());
    return files;
  }
  std::vector<std::string> built_configs(const std::string& folder) const {
    std::vector<std::string> out;
    const json manifest = json::parse(read(folder + "/manifest.json"));
    for (const json& kernel : manifest.at("kernels")) {
      std::map<std::string, int64_t> knobs;
      for (const auto& [knob, value] : kernel.at("config").items()) knobs[knob] = value.get<int64_t>();
      out.push_back(Config(knobs).to_text());
    }
    return out;
  }

  static Workload dense() { return product(64, 96, 128, /*bias=*/true); }
  static Workload wide() { return product(32, 256, 64); }
  std::vector<std::string> configs(const Workload& w, size_t count) const {
    const auto instance = matmul().apply(w, cpu_);
    const ConfigSpace& space = (*instance)->space();
    std::vector<std::string> out;
    for (ConfigIndex i = 1; out.size() < count; i += space.size() / (count + 2))
      if (i != space.default_index()) out.push_back(space.at(i).to_text());
    return out;
  }
  static constexpr char kDense[] = R"({"name":"dense","op":"matmul","a":[64,128],"b":[128,96],"bias":true})";
  static constexpr char kWide[] = R"({"name":"wide","op":"matmul","a":[32,64],"b":[64,256]})";

  std::vector<std::string> dense_, wide_;
};

TEST_F(LockCli, EverybodyBuildsTheLockedKernelsWhateverTheirDatabasesSay) {
  const Ended locked = done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell));
  EXPECT_THAT(locked.out, StartsWith("answers.lock: 2 added, 0 changed, 0 kept\n"));
  for (const char* db : {"alice.db", "bob.db", "none.db"}) {
    const std::string out = str("out_", db);
    const Ended built =
        done(str("build job.json -o ", out, " --name lib --lock answers.lock --db ", db, kOnHaswell));
    EXPECT_EQ(built_configs(out), (std::vector<std::string>{dense_[0], wide_[0]})) << db;
    EXPECT_EQ(tree(out), tree("out_alice.db")) << "all files are the same, byte for byte";
    EXPECT_THAT(built.out, HasSubstr(", locked\n"));
    EXPECT_EQ(built.err, "");
  }
  // What a database knows is told, not built.
  const auto says = [&](const char* db) {
    return done(str("build job.json -o out --name lib --lock answers.lock --db ", db, kOnHaswell)).out;
  };
  EXPECT_THAT(says("alice.db"),
              StartsWith("dense: 1.000 us in one trial, not certified, locked\nwide: 3.000 us in one"));
  EXPECT_THAT(says("bob.db"),
              StartsWith("dense: 1.400 us in one trial, not certified, locked\nwide: 3.000 us in one"));
  EXPECT_THAT(says("none.db"), StartsWith("dense: time not known here, locked\n"));
  // Without the file each database has its own answer.
  done(str("build job.json -o bobs --name lib --db bob.db", kOnHaswell));
  EXPECT_EQ(built_configs("bobs"), (std::vector<std::string>{dense_[1], wide_[1]}));
  EXPECT_NE(tree("bobs").at("lib/liblib.so"), tree("out").at("lib/liblib.so"));
}

TEST_F(LockCli, QuerySaysThatTheAnswerIsLockedAndWhatIsKnownOfIt) {
  done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell));
  const std::string query = str("query dense.json --lock answers.lock", kOnHaswell, " --db ");
  EXPECT_THAT(
      done(query + "bob.db").out,
      AllOf(HasSubstr("answer      locked: answers.lock:"), HasSubstr("time        1.400 us in one trial\n"),
            HasSubstr("config      " + dense_[0]), HasSubstr("rests on    trial j1.1, ")));
  EXPECT_THAT(done(query + "none.db").out, HasSubstr("time        not known here"));
  const json known = json::parse(done(query + "bob.db --json").out);
  EXPECT_EQ(known.at("answer"), "locked");
  EXPECT_EQ(known.at("locked_at"), "answers.lock:5");
  EXPECT_EQ(known.at("time_ns"), 1400);
  const json unknown = json::parse(done(query + "none.db --json").out);
  EXPECT_EQ(unknown.at("answer"), "locked");
  EXPECT_FALSE(unknown.contains("time_ns"));
  EXPECT_EQ(tuner(query + "bob.db --exact").exit_code, 0);
  EXPECT_EQ(tuner(query + "none.db --exact").exit_code, 1) << "nobody measured it here";
}

TEST_F(LockCli, ATaskWithoutAnEntryIsOneLineWithTheCommandThatAddsIt) {
  done(str("lock dense.json -o answers.lock --db alice.db", kOnHaswell));
  const std::string wide_key = wide().key();
  for (const char* verb : {"query", "build -o out"}) {
    const std::string line = refused(str(verb, " job.json --lock answers.lock --db alice.db", kOnHaswell));
    EXPECT_THAT(line, AllOf(HasSubstr("answers.lock has no entry for " + wide_key),
                            HasSubstr("tuner lock --db alice.db job.json -o answers.lock --target "
                                      "'llvm -mcpu=haswell -threads=1'")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
  // Another kind of machine finds nothing, and is told what there is.
  EXPECT_THAT(refused("build job.json -o out --lock answers.lock --target 'llvm -mcpu=znver4 -threads=1'"),
              AllOf(HasSubstr("2 of 2 tasks cannot be taken from answers.lock, the first: "),
                    HasSubstr("on \"llvm -mcpu=znver4 -threads=1\"; it has this workload for "
                              "\"llvm -mcpu=haswell -threads=1\"")));
  // The command that is named does add it.
  done("lock --db alice.db job.json -o answers.lock --target 'llvm -mcpu=haswell -threads=1'");
  done(str("build job.json -o out --lock answers.lock --db alice.db", kOnHaswell));
}

TEST_F(LockCli, TheFileIsTheSameWhenNothingChangedAndTellsWhatDid) {
  const std::string lock = str("lock job.json -o answers.lock", kOnHaswell, " --db ");
  done(lock + "alice.db");
  const std::string first = read("answers.lock");
  EXPECT_EQ(done(lock + "alice.db").out, "answers.lock: 0 added, 0 changed, 2 kept\n");
  EXPECT_EQ(read("answers.lock"), first);
  EXPECT_THAT(first, Not(HasSubstr(folder_.path().string())));
  const Ended changed = done(lock + "bob.db");
  EXPECT_THAT(changed.out, StartsWith("answers.lock: 0 added, 2 changed, 0 kept\n"));
  EXPECT_THAT(changed.out,
              HasSubstr(str("  changed  ", dense().key(),
                            " on \"llvm -mcpu=haswell -threads=1\": matmul_cpu v", matmul().version(), ", ",
                            dense_[0], " -> matmul_cpu v", matmul().version(), ", ", dense_[1], "\n")));
  EXPECT_NE(read("answers.lock"), first);
  done(lock + "alice.db");
  EXPECT_EQ(read("answers.lock"), first);
}

TEST_F(LockCli, OtherTasksKeepTheirEntriesUnlessOnlyTheseAreWanted) {
  done(str("lock dense.json -o answers.lock --db alice.db", kOnHaswell));
  EXPECT_THAT(done(str("lock wide.json -o answers.lock --db bob.db", kOnHaswell)).out,
              StartsWith("answers.lock: 1 added"));
  done(str("build job.json -o out --name lib --lock answers.lock", kOnHaswell));
  EXPECT_EQ(built_configs("out"), (std::vector<std::string>{dense_[0], wide_[1]}));
  const Ended only = done(str("lock wide.json -o answers.lock --only --db bob.db", kOnHaswell));
  EXPECT_THAT(only.out, AllOf(StartsWith("answers.lock: 0 added, 0 changed, 1 kept, 1 removed\n"),
                              HasSubstr("  removed  " + dense().key())));
  EXPECT_EQ(tuner(str("query dense.json --lock answers.lock", kOnHaswell)).exit_code, 1);
}

// Carol has tuned one of the tasks. What her database only guesses, or does not know, is no reason to change
// the other.
TEST_F(LockCli, OnlyWhatWasTunedReplacesAnEntry) {
  open_new("carol.db");
  tuned(wide(), cpu_, {{wide_[1], 900}});
  tuned(product(64, 96, 128), cpu_, {{dense_[2], 10}});  // another epilogue: a guess at dense
  store_.reset();
  done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell));
  const Ended carol = done(str("lock job.json -o answers.lock --db carol.db", kOnHaswell));
  EXPECT_THAT(carol.out, StartsWith("answers.lock: 0 added, 1 changed, 1 kept\n"));
  EXPECT_THAT(carol.err, HasSubstr("1 kept entry is not tuned here. To choose anew: "));
  done(str("build job.json -o out --name lib --lock answers.lock", kOnHaswell));
  EXPECT_EQ(built_configs("out"), (std::vector<std::string>{dense_[0], wide_[1]}));
  // In a new file the guess is better than nothing, and it is told.
  EXPECT_THAT(done(str("lock job.json -o new.lock --db carol.db", kOnHaswell)).err,
              HasSubstr("another epilogue"));
  // A default is not, unless it is asked for.
  const std::string defaults = str("lock job.json -o d.lock --db none.db", kOnHaswell);
  EXPECT_THAT(refused(defaults), HasSubstr("none.db: there is no database yet"));
  open_new("empty.db");
  store_.reset();
  EXPECT_THAT(refused(str("lock job.json -o d.lock --db empty.db", kOnHaswell)),
              AllOf(HasSubstr("2 of 2 tasks not tuned, so nothing is written. The first: " + dense().key()),
                    HasSubstr("nothing is written"), HasSubstr("tuner submit --db empty.db job.json"),
                    HasSubstr("--defaults")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("d.lock")));
  EXPECT_EQ(done(defaults + " --defaults").out.substr(0, 18), "d.lock: 2 added, 0");
  const std::string before = read("answers.lock");
  done(str("lock job.json -o answers.lock --defaults --db none.db", kOnHaswell));
  EXPECT_EQ(read("answers.lock"), before) << "defaults replace nothing";
}

TEST_F(LockCli, AnEntryOfAnotherVersionOfItsTemplateIsToldAndWrittenAnew) {
  done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell));
  std::string text = read("answers.lock");
  const std::string now = str("matmul_cpu v", matmul().version());
  for (size_t at = text.find(now); at != std::string::npos; at = text.find(now, at + 1))
    text.replace(at, now.size(), "matmul_cpu v1");
  write("answers.lock", text);
  EXPECT_THAT(refused(str("build job.json -o out --lock answers.lock --db alice.db", kOnHaswell)),
              AllOf(HasSubstr("2 of 2 tasks cannot be taken from answers.lock, the first: answers.lock:5: " +
                              dense().key()),
                    HasSubstr(str("is locked to version 1 of template matmul_cpu; this program has version ",
                                  matmul().version())),
                    HasSubstr("To choose anew: ")));
  const Ended check = tuner(str("lock --check answers.lock job.json --db alice.db", kOnHaswell));
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_THAT(check.out, AllOf(HasSubstr("answers.lock:4: "), HasSubstr("answers.lock:5: "),
                               HasSubstr("answers.lock: 0 of 2 tasks are locked as they should be\n")));
  EXPECT_THAT(done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell)).out,
              StartsWith("answers.lock: 0 added, 2 changed"));
  done(str("build job.json -o out --lock answers.lock", kOnHaswell));
}

TEST_F(LockCli, CheckFindsWhatIsMissingOrWasTunedAnew) {
  const std::string check = str("lock --check answers.lock job.json", kOnHaswell, " --db ");
  done(str("lock dense.json -o answers.lock --db alice.db", kOnHaswell));
  const std::string before = read("answers.lock");
  const Ended missing = tuner(check + "alice.db");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.out, AllOf(StartsWith("answers.lock has no entry for " + wide().key()),
                                 HasSubstr("\nanswers.lock: 1 of 2 tasks are locked as they should be\n")));
  done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell));
  EXPECT_EQ(done(check + "alice.db").out, "answers.lock: 2 of 2 tasks are locked as they should be\n");
  const Ended differs = tuner(check + "bob.db");
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_THAT(differs.out,
              HasSubstr(str(dense().key(), " on \"llvm -mcpu=haswell -threads=1\" is locked to matmul_cpu v",
                            matmul().version(), ", ", dense_[0], "; the database has matmul_cpu v",
                            matmul().version(), ", ", dense_[1], " (1.200 us). To take it: ")));
  // In CI there may be no database: entries are held against this program alone.
  const Ended alone = done(check + "none.db");
  EXPECT_THAT(alone.err, HasSubstr("none.db: there is no database yet"));
  // What was built can be held against the file, too.
  done(str("build job.json -o bobs --name lib --db bob.db", kOnHaswell));
  EXPECT_THAT(tuner("lock --check answers.lock bobs").out, HasSubstr("; bobs has matmul_cpu v"));
  done(str("build job.json -o good --name lib --lock answers.lock", kOnHaswell));
  done("lock --check answers.lock good");
  EXPECT_NE(read("answers.lock"), before);
}

TEST_F(LockCli, WhatWasBuiltCanBeLockedWithoutADatabase) {
  done(str("build job.json -o bobs --name lib --db bob.db", kOnHaswell));
  EXPECT_THAT(done("lock bobs -o answers.lock --db none.db").out, StartsWith("answers.lock: 2 added"));
  done(str("build job.json -o out --name lib --lock answers.lock --db alice.db", kOnHaswell));
  EXPECT_EQ(built_configs("out"), (std::vector<std::string>{dense_[1], wide_[1]}));
  EXPECT_EQ(tree("out").at("lib/liblib.so"), tree("bobs").at("lib/liblib.so"))
      << "the same kernels as were built";
  write("bobs/manifest.json", R"({"kernels": [{"answer": {"kind": "exact"}, "workload": "v1 dance"}]})");
  EXPECT_THAT(refused("lock bobs -o other.lock", 2), HasSubstr("bobs/manifest.json: kernels[0]."));
}

// The order in which files and folders are given decides nothing.
TEST_F(LockCli, ATaskThatIsOfferedTwiceHasOneEntry) {
  done(str("build job.json -o bobs --name lib --db bob.db", kOnHaswell));
  done(str("build job.json -o alices --name lib --db alice.db", kOnHaswell));
  open_new("empty.db");
  store_.reset();
  for (const char* files : {"job.json bobs", "bobs job.json"})
    EXPECT_THAT(done(str("lock ", files, " -o answers.lock --db empty.db", kOnHaswell)).out,
                AllOf(StartsWith("answers.lock: "), HasSubstr("2 "), HasSubstr("0 changed")))
        << files;
  EXPECT_THAT(read("answers.lock"), AllOf(HasSubstr(dense_[1]), HasSubstr(wide_[1])));
  EXPECT_THAT(refused(str("lock alices bobs -o both.lock"), 2),
              AllOf(HasSubstr(dense().key()), HasSubstr(": alices has matmul_cpu v"),
                    HasSubstr(", and bobs has matmul_cpu v"), HasSubstr("expected one of the two")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("both.lock")));
}

// A workload without constants has one kind of time: its kernel is what its entry says, however it was asked
// for.
TEST_F(LockCli, WithoutConstantsNoneAreColdInABundle) {
  write("softmax.json", R"({"op":"softmax","rows":8,"columns":64})");
  done(str("lock softmax.json -o answers.lock --defaults --constants cold --db alice.db", kOnHaswell));
  EXPECT_THAT(read("answers.lock"), HasSubstr(" | warm | any | softmax_cpu"));
  done(str("build softmax.json -o out --constants cold --lock answers.lock", kOnHaswell));
  EXPECT_FALSE(json::parse(read("out/manifest.json")).at("kernels").at(0).contains("constants"));
}

TEST_F(LockCli, ConstantsAreAPartOfTheTask) {
  write("cold.json",
        R"({"op":"matmul","a":[64,128],"b":[128,96],"constant":["b"],"measure":{"constants":"cold"}})");
  done(str("lock cold.json -o answers.lock --defaults --db alice.db", kOnHaswell));
  EXPECT_THAT(read("answers.lock"), HasSubstr(" | cold | any | "));
  EXPECT_EQ(tuner(str("query cold.json --lock answers.lock", kOnHaswell)).exit_code, 0);
  // `build` asks for warm ones unless it is told.
  const std::string line = refused(str("build cold.json -o out --lock answers.lock", kOnHaswell));
  EXPECT_THAT(
      line, AllOf(HasSubstr("it has this workload for \"llvm -mcpu=haswell -threads=1\" with constants cold"),
                  HasSubstr("-o answers.lock --target 'llvm -mcpu=haswell -threads=1' --constants warm")));
  done(str("build cold.json -o out --constants cold --lock answers.lock", kOnHaswell));
  EXPECT_EQ(json::parse(read("out/manifest.json")).at("kernels").at(0).at("constants"), "cold");
  done("lock out -o again.lock --defaults");
  EXPECT_EQ(read("again.lock"), read("answers.lock"));
}

TEST_F(LockCli, WrongUseIsOneLineAndChangesNothing) {
  write("bad.lock", "tuner-lock 1\nllvm -mcpu=haswell\n");
  write("model.onnx", "x");
  std::filesystem::create_directory(folder_.file("folder"));
  const std::pair<std::string, std::string> cases[] = {
      {"lock job.json",
       "expected -o FILE, to write a lock file, or --check FILE, to compare one; found neither"},
      {"lock job.json -o a.lock --check a.lock", "found both"},
      {"lock job.json --check bad.lock --only", "--check writes nothing: expected no --only"},
      {"lock job.json -o bad.lock --db alice.db", "bad.lock:2: expected 6 fields"},
      {"lock job.json --check bad.lock", "bad.lock:2: expected 6 fields"},
      {"lock job.json -o job.json --db alice.db", "job.json"},
      {"lock model.onnx -o a.lock", "model.onnx: expected a job file or a compiled folder, found a model"},
      {"lock folder -o a.lock", "folder: expected a folder that "},
      {"lock none.json -o a.lock --db alice.db", "none.json: cannot be read"},
      {"query job.json --lock none.lock", "none.lock: cannot be read"},
      {"query job.json --lock bad.lock", "bad.lock:2: expected 6 fields"},
      {"build job.json -o out --lock bad.lock", "bad.lock:2: expected 6 fields"},
      {"query --all --lock bad.lock", "--all lists a database: expected no --lock"},
  };
  for (const auto& [arguments, message] : cases)
    EXPECT_THAT(refused(arguments, 2), HasSubstr(message)) << arguments;
  EXPECT_EQ(read("bad.lock"), "tuner-lock 1\nllvm -mcpu=haswell\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("a.lock")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
}

TEST_F(LockCli, ADaemonsAnswersAreLockedAndTellTimes) {
  const std::string address = "unix:" + folder_.file("d.sock");
  testing::Process daemon(
      {str(TUNER_BIN_DIR, "/tuner"), "serve", "--listen", address, "--db", folder_.file("alice.db")},
      folder_.file("serve"));
  ASSERT_TRUE(testing::eventually(std::chrono::seconds(30), [&] {
    return std::filesystem::exists(folder_.file("d.sock"));
  })) << daemon.err();
  done(str("lock job.json -o there.lock --daemon ", address, kOnHaswell));
  done(str("lock job.json -o here.lock --db alice.db", kOnHaswell));
  EXPECT_EQ(read("there.lock"), read("here.lock"));
  const json known =
      json::parse(done(str("query dense.json --lock here.lock --json --daemon ", address, kOnHaswell)).out);
  EXPECT_EQ(known.at("answer"), "locked");
  EXPECT_EQ(known.at("time_ns"), 1000);
  done(str("lock dense.json -o bobs.lock --db bob.db", kOnHaswell));
  const json other =
      json::parse(done(str("query dense.json --lock bobs.lock --json --daemon ", address, kOnHaswell)).out);
  EXPECT_FALSE(other.contains("time_ns")) << "the daemon's answer is another config";
}

TEST_F(LockCli, StandardOutputIsAFile) {
  done(str("lock job.json -o answers.lock --db alice.db", kOnHaswell));
  EXPECT_EQ(done(str("lock job.json -o - --db alice.db", kOnHaswell)).out, read("answers.lock"));
}

class LockedModel : public LockCli {
 protected:
  void SetUp() override {
    const auto model = testing::network("mlp", {.narrower = 16});
    ASSERT_TRUE(model) << model.message();
    write("mlp.onnx", *model);
    done("compile mlp.onnx -o net --name net --no-tune --db none.db");
  }
  std::map<std::string, json> planned(const std::string& folder) const {
    std::map<std::string, json> kernels;
    const json plan = json::parse(read(folder + "/plan.json"));
    for (const json& k : plan.at("kernels"))
      kernels[k.at("workload").get<std::string>()] = {k.at("template"), k.at("config")};
    EXPECT_FALSE(kernels.empty());
    return kernels;
  }
};

TEST_F(LockedModel, IsCompiledFromItsLockFileWithoutTuning) {
  done("lock net -o answers.lock --defaults");
  const Ended again = done("compile mlp.onnx -o again --name net --lock answers.lock --db none.db");
  EXPECT_EQ(planned("again"), planned("net"));
  EXPECT_EQ(tree("again").at("lib/libnet.so"), tree("net").at("lib/libnet.so"));
  EXPECT_EQ(tree("again").at("net.weights"), tree("net").at("net.weights"));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("none.db"))) << "nothing was tuned";
  EXPECT_THAT(again.err, Not(HasSubstr("not tuned for just their shape")));
  done("lock again --check answers.lock");
}

TEST_F(LockedModel, UsesTheLockedConfigsAndNoOthers) {
  done("lock net -o answers.lock --defaults");
  // Another valid config for each product.
  std::string text = read("answers.lock");
  const std::string from = "unroll_k=1";
  ASSERT_NE(text.find(from), std::string::npos) << text;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
    text.replace(at, from.size(), "unroll_k=2");
  write("answers.lock", text);
  done("compile mlp.onnx -o other --name net --lock answers.lock --db none.db");
  EXPECT_NE(planned("other"), planned("net"));
  done("lock other --check answers.lock");
  EXPECT_EQ(tuner("lock net --check answers.lock").exit_code, 0) << "net has defaults, which are no choice";
}

TEST_F(LockedModel, ALayerWithoutAnEntryStopsItBeforeAnythingIsBuilt) {
  write("answers.lock", "tuner-lock 1\n");
  const std::string line = refused("compile mlp.onnx -o out --name net --lock answers.lock --db none.db");
  EXPECT_THAT(
      line,
      AllOf(
          HasSubstr(" tasks cannot be taken from answers.lock, the first: answers.lock has no entry for v1 "),
          HasSubstr("constants cold"), HasSubstr(" lock --db none.db out -o answers.lock")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out")));
}

}  // namespace
}  // namespace tuner
