// The runtime library with a lock file: its configs and no others, by an option or by TUNER_LOCK, from a
// database, from none, and from a bundle.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "db/resolve/answer_lock.h"
#include "tests/deploy/heard.h"
#include "tests/deploy/runtime_fixture.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::kMatmul;
using ::testing::StartsWith;
using testing::use_once;

class RuntimeLock : public testing::ListeningTest {
 protected:
  RuntimeLock() {
    ::unsetenv("TUNER_LOCK");
    ::unsetenv("TUNER_VERIFY");
    ::setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);  // the default database: none
  }
  ~RuntimeLock() override { ::unsetenv("TUNER_LOCK"); }

  // A valid config that is neither the default nor what tune() takes.
  static LockedChoice some_choice(const std::string& json) {
    const Workload workload = testing::workload_of(json);
    const Target target = host_target();
    const auto templates = templates_for(workload, target, "direct").value();
    const AnyTemplate& chosen = *templates.front();
    const auto instance = chosen.apply(workload, target).value();
    const ConfigSpace& space = instance->space();
    const std::string config =
        space.at((space.default_index() + 1 + space.size() / 2) % space.size()).to_text();
    return {std::string(chosen.name()), chosen.version(), config};
  }
  std::string lock(const std::string& json, const LockedChoice& choice,
                   const std::string& name = "answers.lock") {
    AnswerLock made(name);
    made.put({.task = locked_task(testing::workload_of(json), host_target(), "", Constants::kWarm),
              .choice = choice});
    write(name, made.text());
    return path(name);
  }
  std::string found_config(tuner_source* source, const std::string& json) {
    tuner_function* f = nullptr;
    if (tuner_find(source, json.c_str(), &f) != TUNER_OK) return tuner_last_error();
    const tuner_answer answer = describe(f);
    const std::string found = str(answer.kind, " ", answer.template_name, " ", answer.config, answer.note);
    tuner_release(f);
    return found;
  }
  static std::string locked_text(const LockedChoice& choice) {
    return str("locked ", choice.template_name, " ", choice.config);
  }
};

TEST_F(RuntimeLock, ItsConfigsAreUsedWhateverTheDatabaseSays) {
  const std::string tuned = tune(kMatmul);
  const LockedChoice choice = some_choice(kMatmul);
  ASSERT_NE(tuned, choice.config);
  const std::string file = lock(kMatmul, choice);
  tuner_source* with = open(path("t.db"), {.lock = file.c_str()});
  EXPECT_EQ(found_config(with, kMatmul), locked_text(choice));
  EXPECT_EQ(use_once(with, kMatmul), "");
  EXPECT_THAT(found_config(open(path("t.db")), kMatmul), StartsWith("exact "));
  // No database is needed.
  tuner_source* none = open_default({.lock = file.c_str()});
  EXPECT_EQ(found_config(none, kMatmul), locked_text(choice));
  EXPECT_EQ(use_once(none, kMatmul), "");
  EXPECT_TRUE(heard_.lines.empty()) << heard_.lines[0];
}

TEST_F(RuntimeLock, TheEnvironmentNamesAFileUnlessTheProgramDoes) {
  tune(kMatmul);
  const LockedChoice choice = some_choice(kMatmul);
  LockedChoice other = choice;
  const std::string file = lock(kMatmul, choice);
  ::setenv("TUNER_LOCK", file.c_str(), 1);
  EXPECT_EQ(found_config(open(path("t.db")), kMatmul), locked_text(choice));
  EXPECT_THAT(found_config(open(path("t.db"), {.lock = ""}), kMatmul), StartsWith("exact ")) << "none";
  const Workload w = testing::workload_of(kMatmul);
  const auto instance = find_template(choice.template_name)->apply(w, host_target()).value();
  const ConfigSpace& space = instance->space();
  other.config = space.at(space.default_index()).to_text();
  const std::string own = lock(kMatmul, other, "own.lock");
  EXPECT_EQ(found_config(open(path("t.db"), {.lock = own.c_str()}), kMatmul), locked_text(other));
  ::setenv("TUNER_LOCK", "/no/such.lock", 1);
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID), StartsWith("TUNER_LOCK: /no/such.lock: "));
  ::setenv("TUNER_LOCK", "", 1);
  EXPECT_THAT(found_config(open(path("t.db")), kMatmul), StartsWith("exact "));
  // A program that was compiled with an older header has no such option.
  ::setenv("TUNER_LOCK", file.c_str(), 1);
  tuner_options old{.struct_bytes = offsetof(tuner_options, lock)};
  tuner_source* source = nullptr;
  ASSERT_EQ(tuner_open(path("t.db").c_str(), &old, &source), TUNER_OK) << tuner_last_error();
  EXPECT_EQ(found_config(source, kMatmul), locked_text(choice));
  tuner_close(source);
}

// Times with constants in the caches and out of them have answers of their own.
TEST_F(RuntimeLock, AnswersRestOnTheKindOfTimesThatIsAskedFor) {
  tune(kMatmul, 1, {}, Constants::kCold);
  EXPECT_THAT(found_config(open(path("t.db"), {.constants = "cold"}), kMatmul), StartsWith("exact "));
  for (const char* warm : {"warm", static_cast<const char*>(nullptr)})
    EXPECT_THAT(found_config(open(path("t.db"), {.constants = warm}), kMatmul),
                ::testing::Not(StartsWith("exact ")));
}

TEST_F(RuntimeLock, WhatIsNotInTheFileIsNotFoundInOneLine) {
  const std::string file = lock(kMatmul, some_choice(kMatmul));
  tuner_source* source = open_default({.lock = file.c_str()});
  EXPECT_THAT(
      found_config(source, testing::kSoftmax),
      AllOf(StartsWith(file + " has no entry for v1 softmax rows=9 columns=70"),
            EndsWith(
                str("run this program once with TUNER_CAPTURE=shapes.json, then tuner lock shapes.json -o ",
                    file))));
  EXPECT_EQ(tuner_find(source, testing::kSoftmax.c_str(), std::make_unique<tuner_function*>().get()),
            TUNER_NOT_FOUND);
  LockedChoice gone = some_choice(kMatmul);
  ++gone.template_version;
  const std::string of_before = lock(kMatmul, gone, "before.lock");
  EXPECT_THAT(found_config(open_default({.lock = of_before.c_str()}), kMatmul),
              AllOf(StartsWith(of_before + ":4: v1 matmul"), HasSubstr("is locked to version "),
                    HasSubstr("this program has version ")));
  write("bad.lock", "tuner-lock 1\nnonsense\n");
  const std::string bad = path("bad.lock");
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID, {.lock = bad.c_str()}),
              StartsWith(bad + ":2: expected 6 fields"));
}

TEST_F(RuntimeLock, TwoRanksGetTheSameCode) {
  const std::string file = lock(kMatmul, some_choice(kMatmul));
  const auto digest = [&](const std::string& cache, const char* db) {
    tuner_options options{.cache_dir = cache.c_str(), .lock = file.c_str()};
    tuner_source* source = db == nullptr ? open_default(options) : open(db, options);
    tuner_function* f = nullptr;
    EXPECT_EQ(tuner_find(source, kMatmul.c_str(), &f), TUNER_OK) << tuner_last_error();
    std::string found = describe(f).digest;
    EXPECT_EQ(describe(f).compiled, 1);
    tuner_release(f);
    return found;
  };
  tune(kMatmul);
  EXPECT_EQ(digest(path("cache1"), nullptr), digest(path("cache2"), path("t.db").c_str()));
}

// --- bundles ---

class LockedBundle : public RuntimeLock {
 protected:
  const std::string task_ = R"({"op":"softmax","rows":9,"columns":73})";
  // As `tuner build` writes it, of the choice.
  void make_bundle(const LockedChoice& choice, const std::string& constants = {}) {
    const Workload w = testing::workload_of(task_);
    const auto instance = find_template(choice.template_name)->apply(w, host_target());
    const auto artifact = compile(*(*instance)->instantiate(*config_from_text(choice.config)), host_target());
    CHECK(artifact.is_ok()) << artifact.message();
    auto kernel = nlohmann::ordered_json::parse(artifact->manifest.to_json());
    kernel.erase("digest");
    kernel["workload"] = w.key();
    kernel["template"] = choice.template_name;
    kernel["template_version"] = choice.template_version;
    const Config config = *config_from_text(choice.config);
    for (const auto& [knob, value] : config.values()) kernel["config"][knob] = value;
    kernel["algorithm"] = "direct";
    if (!constants.empty()) kernel["constants"] = constants;
    kernel["answer"] = {{"kind", "exact"}};
    std::filesystem::create_directories(folder_ / "bundle" / "lib");
    write("bundle/lib/libmine.so", artifact->binary);
    write("bundle/manifest.json", nlohmann::ordered_json{{"format", 1},
                                                         {"bundle", "mine"},
                                                         {"library", "lib/libmine.so"},
                                                         {"digest", artifact->manifest.digest},
                                                         {"kernels", {kernel}}}
                                      .dump());
  }
};

TEST_F(LockedBundle, MustHaveTheLockedConfig) {
  const LockedChoice choice = some_choice(task_);
  make_bundle(choice);
  const std::string file = lock(task_, choice);
  tuner_source* source = open(path("bundle"), {.lock = file.c_str()});
  EXPECT_EQ(found_config(source, task_), locked_text(choice));
  EXPECT_EQ(use_once(source, task_), "");

  LockedChoice other = choice;
  ++other.template_version;
  const std::string newer = lock(task_, other, "newer.lock");
  EXPECT_THAT(found_config(open(path("bundle"), {.lock = newer.c_str()}), task_),
              AllOf(StartsWith(newer + ":4: v1 softmax"), HasSubstr(str("is locked to ", described(other))),
                    HasSubstr(str("manifest.json has ", described(choice))),
                    EndsWith("Build it again: tuner build FILE -o DIR --lock " + newer)));
  const std::string empty = path("empty.lock");
  write("empty.lock", "tuner-lock 1\n");
  EXPECT_THAT(found_config(open(path("bundle"), {.lock = empty.c_str()}), task_),
              StartsWith(empty + " has no entry for v1 softmax"));
}

}  // namespace
}  // namespace tuner
