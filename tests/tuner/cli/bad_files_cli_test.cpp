// Every command that reads files, with files that are none: one line that says why, the right exit code, at
// once, and nothing left behind. A row more is a line more in one of the tables.
#include "tests/tuner/cli/bad_input_table.h"

namespace tuner {
namespace {

using testing::BadInputFolder;
using testing::BadInputRow;
using testing::kFailed;

// What is wrong with a job file, whichever command reads it.
const std::vector<std::pair<std::string, std::string>> kJobFiles = {
    {"missing.json", "missing.json: cannot be read: No such file or directory. Expected a job file"},
    {"good.json/x", "Not a directory"},
    {"folder", "folder: is a folder, expected a job file"},
    {"unreadable", "Permission denied"},
    {"loop", "Too many levels of symbolic links"},
    {"fifo", "fifo: is a FIFO that nobody writes to"},
    {"/dev/zero", "/dev/zero: is a device, expected a job file"},
    {"empty", "empty: "},
    {"/dev/null", "/dev/null: "},
    {"text", "text: "},
    {"binary", "binary: "},
    {"nul", "nul: "},
    {"utf8", "utf8: "},
    {"deep", "deep: expected at most 16 levels of brackets"},
    {"cut.json", "cut.json: "},
    {"type.json", "type.json: a: "},
    {"key.json", "key.json: "},
    {"word.json", "word.json: search: expected one of "},
    {"op.json", "op.json: op: "},
    {"huge.json", "huge.json: a"},
    {"overflow.json", "overflow.json: a"},
    {"negative.json", "negative.json: "},
    {"odds.json", "odds.json: "},
    {"none.json", "none.json: expected at least one entry"},
    {"target.json", "target.json: target: "},
};

// Commands that read one; FILE stands for it.
const std::vector<std::string> kReadJobFiles = {
    "submit FILE --db new.db",
    "query FILE --db good.db",
    "build FILE --db good.db -o out",
    "show FILE --db good.db",
    "verify FILE",
    "pack FILE -o out.pack",
    "estimate FILE --db good.db",
    "records export FILE --db good.db -o out.jsonl",
    "records export --space FILE --db good.db -o out.csv",
    "cover --tasks FILE --db good.db -o out.h",
};

TEST(BadFiles, JobFilesOfEveryCommand) {
  BadInputFolder folder;
  std::vector<BadInputRow> rows;
  for (const std::string& command : kReadJobFiles)
    for (const auto& [file, says] : kJobFiles) {
      std::string words = command;
      rows.push_back({words.replace(words.find("FILE"), 4, file), says});
    }
  folder.check(rows);
}

// What is wrong with a lock file. FILE stands for it.
TEST(BadFiles, LockFilesOfEveryCommand) {
  BadInputFolder folder;
  std::vector<BadInputRow> rows;
  for (const std::string command :
       {"query good.json --db good.db --lock FILE", "build good.json --db good.db -o out --lock FILE",
        "lock good.json --db good.db --check FILE"})
    for (const auto& [file, says] : std::vector<std::pair<std::string, std::string>>{
             {"missing", "missing: cannot be read: No such file"},
             {"folder", "folder: is a folder, expected a lock file, as "},
             {"fifo", "fifo: is a FIFO that nobody writes to"},
             {"/dev/zero", "/dev/zero: is a device, expected a lock file"},
             {"loop", "Too many levels of symbolic links"},
             {"empty", "empty:1: expected \"tuner-lock 1\", found \"\""},
             {"/dev/null", "/dev/null:1: expected \"tuner-lock 1\""},
             {"text", "text:1: expected \"tuner-lock 1\""},
             {"binary", "binary:1: expected "},
             {"nul", "nul:1: expected "},
             {"good.json", "good.json:1: expected \"tuner-lock 1\""}}) {
      std::string words = command;
      rows.push_back({words.replace(words.find("FILE"), 4, file), says});
    }
  folder.check(rows);
}

// What is wrong with a database, whichever command reads it.
const std::vector<BadInputRow> kDatabases = {
    {"none.db", "none.db: there is no database yet", kFailed},
    {"empty.db", "empty.db: holds nothing yet", kFailed},
    {"folder", "folder: is a folder, expected a database file"},
    {"text", "text: is no database of this program"},
    {"binary", "binary: is no database of this program"},
    {"damaged.db", "damaged.db: "},
    {"cut.db", "cut.db: "},
    {"older.db",
     "older.db: has schema version 5, this program opens 6 to 9: written by an older tuner. Export"},
    {"fifo", "fifo: is no regular file, expected a database file"},
    {"/dev/zero", "/dev/zero: is no regular file, expected a database file"},
    {"loop", "Too many levels of symbolic links"},
};

const std::vector<std::string> kReadDatabases = {
    "jobs --db FILE",
    "report j1 --no-roofs -o out.html --db FILE",
    "replay j1 --db FILE",
    "whatif j1 --strategy random --db FILE",
    "records export -o out.jsonl --db FILE",
    "learn --db FILE",
    "watch j1 --db FILE",
    "rerun t1 --db FILE",
};

TEST(BadFiles, DatabasesOfEveryCommandThatReadsOne) {
  BadInputFolder folder;
  std::vector<BadInputRow> rows;
  for (const std::string& command : kReadDatabases)
    for (const BadInputRow& database : kDatabases) {
      BadInputRow row = database;
      row.command = command;
      row.command.replace(command.find("FILE"), 4, database.command);
      rows.push_back(row);
    }
  folder.check(rows);
}

const std::vector<BadInputRow> kImport = {
    {"records import missing.jsonl --db good.db", "missing.jsonl: cannot be read: No such file"},
    {"records import folder --db good.db", "folder: is a folder, expected a file of records"},
    {"records import empty --db good.db", "empty: is empty, expected records"},
    {"records import text --db good.db", "text: is none of the formats known here"},
    {"records import binary --db good.db", "binary: is none of the formats known here"},
    {"records import nul --db good.db", "nul: is none of the formats known here"},
    {"records import utf8 --db good.db", "utf8: is none of the formats known here"},
    {"records import deep --db good.db", "deep: is none of the formats known here"},
    {"records import loop --db good.db", "Too many levels of symbolic links"},
    {"records import fifo --db good.db", "fifo: is a FIFO, which can be read only once"},
    {"records import fifo --format csv --db good.db", "fifo: is a FIFO that nobody writes to"},
    {"records import /dev/zero --db good.db", "/dev/zero: is a device, expected a file of records"},
    {"records import unreadable --db good.db", "Permission denied"},
    {"records import garbage.gz --db good.db", "garbage.gz: "},
    {"records import untimed.csv --db good.db", "untimed.csv: "},
    {"records import space.csv --format xml --db good.db", "--format: found \"xml\""},
    {"records import text --format t4 --db good.db", "text: no T4 document"},
    {"records import --db good.db", "FILE"},
    {"records import space.csv --db none/x.db", "the folder none does not exist. Make it"},
    {"records import space.csv --db folder", "folder: is a folder, expected a database file"},
    {"records import space.csv --db text", "text: is no database of this program"},
    {"records import space.csv --db damaged.db", "damaged.db: "},
    {"records import space.csv --db fifo", "fifo: is no regular file"},
    {"records import space.csv --db full", "full: is no regular file"},
    {"records import space.csv --db loop", "Too many levels of symbolic links"},
};

const std::vector<BadInputRow> kMerge = {
    {"records check --db folder", "folder: is a folder"},
    {"records check --db damaged.db", "damaged.db: is damaged: ", kFailed},  // what it was asked
    {"records check --db cut.db", "cut.db: ", kFailed},
    {"records check --db cut.db --json", "cut.db: ", kFailed},
    {"records check --db text", "text: is no database of this program"},
    {"records check --db fifo", "fifo: is no regular file"},
    {"records check --db loop", "Too many levels of symbolic links"},
    {"records check none.db", "records check: The following argument was not expected: none.db"},
    {"records merge none.db -o out.db", "none.db: there is no database yet"},
    {"records merge folder -o out.db", "folder: is a folder"},
    {"records merge text -o out.db", "text: is no database of this program"},
    {"records merge good.db damaged.db -o out.db", "damaged.db: "},
    {"records merge cut.db -o out.db", "cut.db: "},
    {"records merge loop -o out.db", "Too many levels of symbolic links"},
    {"records merge fifo -o out.db", "fifo: is no regular file"},
    {"records merge good.db -o none/out.db", "its folder none does not exist"},
    {"records merge good.db -o folder", "folder: is a folder"},
    {"records merge good.db -o text", "text: is no database of this program"},
    {"records merge good.db -o full", "full: is no regular file"},
    {"records merge good.db -o loop", "Too many levels of symbolic links"},
    {"records merge good.db", "--output is required"},
};

const std::vector<BadInputRow> kDiff = {
    {"records diff none.db good.db", "none.db: there is no database yet"},
    {"records diff good.db none.db", "none.db: there is no database yet"},
    {"records diff good.db folder", "folder: is a folder"},
    {"records diff text good.db", "text: is no database of this program"},
    {"records diff good.db damaged.db", "damaged.db: "},
    {"records diff loop good.db", "Too many levels of symbolic links"},
    {"records diff good.db fifo", "fifo: is no regular file"},
    {"records diff good.db", "required"},
    {"records diff good.db good.db --threshold none", "--threshold"},
    {"records diff good.db good.db --threshold -1", "--threshold"},
};

const std::vector<BadInputRow> kOutputs = {
    {"records export --db good.db -o none/out",
     "none/out: cannot be written: its folder none does not exist"},
    {"records export --db good.db -o folder", "folder: is a folder, expected the name of a file to write"},
    {"records export --db good.db -o text/out", "Not a directory"},
    {"records export --db good.db -o loop", "Too many levels of symbolic links"},
    {"records export --db good.db -o /dev/full", "/dev/full: No space left on device", kFailed},
    {"records export --db good.db -o full", "full: No space left on device", kFailed},
    {"records export --db good.db -o full.gz", "full.gz: No space left on device", kFailed},
    {"records export --db good.db -o out --format xml", "--format: found \"xml\""},
    {"records export --db good.db -o out --since yesterday", "--since: found \"yesterday\""},
    {"records export --db good.db -o out --own --foreign", "--own and --foreign exclude each other"},
    {"records export --db good.db -o out --job j9", "no job \"j9\"", kFailed},
    {"records export --db good.db -o out --task 7", "--task chooses a task of FILE"},
    {"records export --db good.db -o out --format t4 --job j1", "no record fits", kFailed},
    {"report j1 --no-roofs --db good.db -o none/out", "its folder none does not exist"},
    {"report j1 --no-roofs --db good.db -o folder", "folder: is a folder"},
    {"report j1 --no-roofs --db good.db -o loop", "Too many levels of symbolic links"},
    {"report j1 --no-roofs --db good.db -o full", "full: No space left on device", kFailed},
    {"report j1 --no-roofs --db good.db", "-o FILE says where the page goes"},
    {"report j9 --no-roofs --db good.db -o out", "no job \"j9\"", kFailed},
    {"report j1 --no-roofs --db good.db -o out --seeds many", "--seeds"},
    {"report j1 --no-roofs --db good.db -o out --seeds 1", "--seeds"},
    {"cover --spaces space.csv space2.csv -o none/out.h", "its folder none does not exist"},
    {"cover --spaces space.csv space2.csv -o folder", "folder: is a folder"},
    {"cover --spaces space.csv space2.csv -o full", "full: No space left on device", kFailed},
    {"pack good.json -o none/out.pack", "its folder none does not exist"},
    {"pack good.json -o folder", "folder: is a folder"},
    {"pack good.json -o loop", "Too many levels of symbolic links"},
    {"pack good.json -o out.pack --candidates 0", "--candidates"},
    {"pack good.json -o out.pack --deadline nan", "--deadline"},
    {"build good.json --db none.db -o text", "text: is a file; expected a folder for -o"},
    {"build good.json --db none.db -o out --emit exe", "--emit"},
    {"build good.json --db none.db -o out --name 3d", "--name: expected a name for C"},
};

const std::vector<BadInputRow> kSpaces = {
    {"simulate missing.csv", "missing.csv: cannot be read: No such file"},
    {"simulate folder", "folder: is a folder, expected a recorded space"},
    {"simulate empty", "empty: "},
    {"simulate text", "text:1: found header"},
    {"simulate binary", "binary:1: found header \"?ELF"},
    {"simulate fifo", "fifo: is a FIFO that nobody writes to"},
    {"simulate /dev/zero", "/dev/zero: is a device"},
    {"simulate loop", "Too many levels of symbolic links"},
    {"simulate unreadable", "Permission denied"},
    {"simulate time.csv", "time.csv:2: time_ms: found \"fast\""},
    {"simulate status.csv", "status.csv: every config fails"},
    {"simulate fields.csv", "fields.csv:2: found 2 cells, expected 3"},
    {"simulate header.csv", "header.csv: "},
    {"simulate untimed.csv", "untimed.csv:1: found header"},
    {"simulate cut.csv.gz", "cut.csv.gz: the compressed file is cut off"},
    {"simulate garbage.gz", "garbage.gz: "},
    {"simulate space.csv --strategy guess", "guess"},
    {"simulate space.csv --trials 0", "--trials"},
    {"cover --spaces missing.csv", "missing.csv: cannot be read: No such file"},
    {"cover --spaces folder", "folder: is a folder, expected a recorded space"},
    {"cover --spaces empty", "empty: "},
    {"cover --spaces text", "text:1: found header"},
    {"cover --spaces fifo", "fifo: is a FIFO that nobody writes to"},
    {"cover --spaces /dev/zero", "/dev/zero: is a device"},
    {"cover --spaces loop", "Too many levels of symbolic links"},
    {"cover --spaces time.csv", "time.csv:2: time_ms"},
    {"cover --spaces garbage.gz", "garbage.gz: "},
    {"cover --spaces space.csv --k -1", "--k"},
    {"cover --spaces space.csv --within 101", "--within"},
};

const std::vector<BadInputRow> kSchedulesAndPacks = {
    {"show good.json --as loops --replay missing", "missing: cannot be read: No such file"},
    {"show good.json --as loops --replay folder", "folder: is a folder, expected a schedule"},
    {"show good.json --as loops --replay text", "text: "},
    {"show good.json --as loops --replay binary", "binary: "},
    {"show good.json --as loops --replay fifo", "fifo: is a FIFO that nobody writes to"},
    {"show good.json --as loops --replay /dev/zero", "/dev/zero: is a device"},
    {"show good.json --as poem", "--as"},
    {"show good.json --as cuda", "--as cuda: not for target"},
    {"show good.json --after poem",
     "is called \"poem\"; expected all or one of reductions, simplify, partition, "},
    {"show good.json --after poem --target 'cuda -arch=sm_80'",
     "--after: no pass for target \"cuda -arch=sm_80\" is called \"poem\"; expected all or one of "
     "fragments, "},
    {"show good.json --after fold-scales", "is called \"fold-scales\""},
    {"show good.json --after barriers", "is called \"barriers\""},
    {"show text.onnx --after barriers",
     "--after: no pass is called \"barriers\"; expected all or one of split-recurrent, "},
    {"show good.json --after unroll --as asm", "--after: found --as asm, expected loops"},
    {"show good.json --after unroll --as space", "--after: found --as space, expected loops"},
    {"runner run-pack missing.pack -o out.jsonl", "missing.pack: cannot be opened: No such file"},
    {"runner run-pack folder -o out.jsonl", "folder: not a pack"},
    {"runner run-pack empty -o out.jsonl", "empty: not a pack"},
    {"runner run-pack text -o out.jsonl", "text: not a pack"},
    {"runner run-pack cut.pack -o out.jsonl", "cut.pack: not a pack"},
    {"runner run-pack version.pack -o out.jsonl", "version.pack: pack version 2147483647"},
    {"runner run-pack index.pack -o out.jsonl", "index.pack: damaged"},
    {"runner run-pack fifo -o out.jsonl", "fifo: not a pack"},
    {"runner run-pack /dev/zero -o out.jsonl", "/dev/zero: not a pack"},
    {"runner run-pack loop -o out.jsonl", "Too many levels of symbolic links"},
};

// What is wrong with a credentials file, whichever command dials by it.
const std::vector<BadInputRow> kCredentials = {
    {"missing", "missing: cannot be read: No such file or directory. Expected HOST:PORT, unix:/path or a "},
    {"folder", "folder: is a folder, expected HOST:PORT, unix:/path or a credentials file"},
    {"unreadable", "Permission denied"},
    {"loop", "Too many levels of symbolic links"},
    {"fifo", "fifo: is a FIFO that nobody writes to"},
    {"/dev/zero", "/dev/zero: is a device"},
    {"empty", "empty: expected a line `daemon: HOST:PORT`, found none"},
    {"text", "text:1: expected `daemon:`, `token:`, `worker:`, a comment or PEM"},
    {"binary", "binary:1: expected `daemon:`"},
    {"nul", "nul:"},
    {"utf8", "utf8:1: expected `daemon:`"},
    {"good.json", "good.json:1: expected `daemon:`"},
};

TEST(BadFiles, CredentialsOfEveryCommandThatDials) {
  BadInputFolder folder;
  std::vector<BadInputRow> rows;
  for (const char* command :
       {"submit good.json", "query good.json", "jobs", "workers", "top --once", "watch j1"})
    for (const BadInputRow& file : kCredentials) {
      BadInputRow row = file;
      row.command = std::string(command) + " --daemon " + file.command;
      rows.push_back(row);
    }
  folder.check(rows);
}

TEST(BadFiles, FilesOfRecords) { BadInputFolder().check(kImport); }
TEST(BadFiles, DatabasesPutTogether) { BadInputFolder().check(kMerge); }
TEST(BadFiles, DatabasesCompared) { BadInputFolder().check(kDiff); }
TEST(BadFiles, FilesThatCannotBeWritten) { BadInputFolder().check(kOutputs); }
TEST(BadFiles, RecordedSpaces) { BadInputFolder().check(kSpaces); }
TEST(BadFiles, SchedulesAndPacks) { BadInputFolder().check(kSchedulesAndPacks); }

// What is wrong with a model's file, whichever command reads it; FILE stands for it.
const std::vector<BadInputRow> kModelFiles = {
    {"missing.onnx", "missing.onnx: cannot be read: No such file"},
    {"folder", "folder: is a folder, expected an ONNX model"},
    {"empty", "empty: is empty, expected an ONNX model"},
    {"text", "text: this is no ONNX model"},
    {"binary", "binary: "},
    {"nul", "nul: "},
    {"utf8", "utf8: "},
    {"deep", "deep: "},
    {"fifo", "fifo: is a FIFO that nobody writes to"},
    {"/dev/zero", "/dev/zero: is a device, expected an ONNX model"},
    {"/dev/null", "/dev/null: "},
    {"loop", "Too many levels of symbolic links"},
    {"unreadable", "Permission denied"},
};

TEST(BadFiles, Models) {
  BadInputFolder folder;
  std::vector<BadInputRow> rows;
  for (const std::string command :
       {"extract FILE -o out", "compile FILE -o out --no-tune", "compile FILE -o out --db new.db"})
    for (BadInputRow row : kModelFiles) {
      row.command = std::string(command).replace(command.find("FILE"), 4, row.command);
      rows.push_back(std::move(row));
    }
  for (const char* command : {"extract", "compile"})
    rows.push_back({str(command, " text -o out --batch 99999999999999999999"), "--batch"});
  for (const char* option :
       {"--trials 0", "--trials many", "--threads 5000", "--time-limit -1", "--batch 0", "--dim N"})
    rows.push_back({str("compile text -o out ", option), std::string(option).substr(0, 5)});
  for (const char* output : {"text", "loop"})
    rows.push_back(
        {str("compile text -o ", output, " --target 'cuda -arch=sm_80'"), "text: this is no ONNX model"});
  folder.check(rows);
}

TEST(BadFiles, CompiledModels) {
  BadInputFolder folder;
  folder.line().run("mkdir plan; cp text plan/plan.json; mkdir list; echo '[]' >list/plan.json");
  std::vector<BadInputRow> rows;
  for (const char* command : {"run", "show --as layers", "run --profile"})
    for (const auto& [file, says] :
         std::initializer_list<std::pair<const char*, const char*>>{{"missing", "missing"},
                                                                    {"text", "text"},
                                                                    {"folder", "folder"},
                                                                    {"plan", "plan/plan.json: line 1"},
                                                                    {"list", "list/plan.json: "},
                                                                    {"loop", "loop"},
                                                                    {"/dev/null", "/dev/null"}})
      rows.push_back({str(command, " ", file), says});
  for (const char* option : {"--runs 0", "--threads 0", "--seed many", "--input", "--before"})
    rows.push_back({str("run folder ", option), std::string(option).substr(0, 4)});
  folder.check(rows);
}

}  // namespace
}  // namespace tuner
