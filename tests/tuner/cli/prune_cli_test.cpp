// tuner records prune as it is typed: alone and beside a daemon, its refusals, and what it prints; and the
// refusals of tuner farm slurm, which need no Slurm.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/db/store_fixture.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandLine;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWork[] = "v1 matmul b=1 m=1 n=1000 k=2048 ta=0 tb=0 bias=1 act=none dtype=float32 const=b";
constexpr char kTarget[] = "llvm -mcpu=haswell -threads=1";

class PruneCli : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto store = must_open((shell_.folder() / "farm.db").string());
    ASSERT_OK(store->add_job(job_row("j1", {{kWork, kTarget}})));
    std::vector<std::string> configs;
    for (int i = 0; i < 30; ++i) configs.push_back(str("a=", i));
    const std::vector<std::string> ids = add_trials(*store, "j1", configs);
    std::vector<MeasureRecord> records;
    for (size_t i = 0; i < ids.size(); ++i)
      records.push_back(ok_record(ids[i], {1000.0 - static_cast<double>(i)}));
    ASSERT_OK(store->add_records(records));
    ASSERT_OK(store->set_job_state("j1", JobState::kFinished, ""));
  }
  CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(PruneCli, ADryRunCountsAndWritesNothing) {
  const std::string before = shell_.read("farm.db");
  const CommandResult r = shell_.run("tuner records prune --dry-run --keep 5 --db farm.db");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, str("would remove 24 of 30 records: ", kWork, "  on  ", kTarget, "\n") +
                       "would remove 24 records of 24 trials; 6 records stay\n");
  EXPECT_EQ(shell_.read("farm.db"), before);
}

TEST_F(PruneCli, ExportsThenRemovesAndTheExportBringsAllBack) {
  const CommandResult r = shell_.run(
      "tuner records prune --keep 5 --db farm.db -o all.jsonl.gz\n"
      "tuner records export --db farm.db | grep -c '\"terminal\"'\n"
      "tuner records import all.jsonl.gz --db farm.db >/dev/null\n"
      "tuner records export --db farm.db | grep -c '\"terminal\"'\n");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("removed 24 of 30 records: v1 matmul "));
  EXPECT_THAT(r.out, HasSubstr("removed 24 records of 24 trials; 6 records stay\n"));
  EXPECT_THAT(r.out, HasSubstr("all.jsonl.gz holds all of before: 31 lines"));
  EXPECT_THAT(r.out, ::testing::EndsWith("\n6\n30\n"));
}

TEST_F(PruneCli, BesideADaemonItIsTheDaemonThatRemoves) {
  const CommandResult r = shell_.run(
      "tuner serve --db farm.db --listen 127.0.0.1:0 >serve.out 2>serve.err & pid=$!\n"
      "trap 'kill $pid; wait $pid || true' EXIT\n"
      "for i in $(seq 600); do tuner health --db farm.db >/dev/null 2>&1 && break; sleep 0.05; done\n"
      "tuner records prune --keep 5 --db farm.db -o all.jsonl --json\n"
      "tuner records prune --keep 5 --db farm.db -o again.jsonl\n"
      "kill -0 $pid && echo the daemon goes on\n");
  EXPECT_EQ(r.exit_code, 0) << r.err << shell_.read("serve.err");
  EXPECT_THAT(r.out, HasSubstr("\"removed\": 24"));
  EXPECT_THAT(r.out, HasSubstr("removed 0 records of 0 trials; 6 records stay\n"));
  EXPECT_THAT(r.out, HasSubstr("the daemon goes on\n"));
  EXPECT_THAT(shell_.read("serve.err"), HasSubstr("audit: the local user prunes 24 records of v1 matmul"));
}

TEST_F(PruneCli, ItsExportNeverReplacesAFile) {
  const CommandResult r = shell_.run(
      "echo precious >old.jsonl\n"
      "tuner records prune --keep 5 --db farm.db -o old.jsonl || echo $?\n"
      "tuner records prune --keep 5 --db farm.db || echo $?\n"
      "tuner records prune --keep 0 --db farm.db -o new.jsonl || echo $?\n"
      "tuner records prune --older-than soon --db farm.db -o new.jsonl || echo $?\n"
      "cat old.jsonl; ls new.jsonl 2>/dev/null || true\n");
  EXPECT_EQ(r.out, "2\n2\n2\n2\nprecious\n");
  EXPECT_THAT(r.err, HasSubstr("old.jsonl is there already, and may be the only copy"));
  EXPECT_THAT(r.err, HasSubstr("expected a file for the export, found none"));
}

TEST_F(PruneCli, ADamagedDatabaseIsLeftAsItIs) {
  // A byte of a stored row: the record of the trial with a=17.
  const CommandResult r = shell_.run(
      "python3 - <<'EOF'\n"
      "data = bytearray(open('farm.db', 'rb').read())\n"
      "at = data.find(b'host1')\n"
      "data[at] ^= 1\n"
      "open('farm.db', 'wb').write(data)\n"
      "EOF\n"
      "tuner records prune --keep 5 --db farm.db -o all.jsonl || echo $?\n");
  EXPECT_EQ(r.out, "1\n") << r.err;
  EXPECT_THAT(r.err, HasSubstr("damaged"));
  EXPECT_THAT(r.err, Not(HasSubstr("removed 24")));
}

TEST(FarmCli, WrongUseIsSaidInOneLine) {
  const CommandLine shell{TUNER_BIN_DIR};
  shell.write("plain.credentials", "daemon: 127.0.0.1:7070\n");
  const std::pair<const char*, const char*> cases[] = {
      {"farm slurm", "farm slurm: expected a command"},
      {"farm slurm up --credentials nosuchfile", "nosuchfile"},
      {"farm slurm up --credentials 127.0.0.1:7070", "tuner admin worker nodes --fleet"},
      {"farm slurm scale", "expected N, or --min and --max; found neither"},
      {"farm slurm scale 3 --min 1 --max 2", "found both"},
      {"farm slurm scale --min 3 --max 2 --daemon x", "expected 0 <= min <= max"},
      {"farm slurm scale --min 0 --max 2", "--daemon: expected credentials with the role query"},
  };
  for (const auto& [words, said] : cases) {
    const CommandResult r = shell.run(str("tuner ", words));
    EXPECT_EQ(r.exit_code, 2) << words << "\n" << r.err;
    EXPECT_THAT(r.err, HasSubstr(said)) << words;
  }
  const CommandResult none = shell.run("tuner farm slurm status");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("no farm in"));
}

}  // namespace
}  // namespace tuner
