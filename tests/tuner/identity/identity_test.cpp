// Whom a farm lets in: the register as text, the identity folder and its acts, and what may never be in a
// file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "proto/daemon_access.h"
#include "tests/damaged_text.h"
#include "tests/support/temporary_folder.h"
#include "tuner/identity/give_out.h"
#include "tuner/identity/identity_folder.h"
#include "tuner/identity/listing.h"

namespace tuner::identity {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::one_line;

constexpr char kAddress[] = "farm.example:7070";

Entry a_token() {
  return {.kind = Entry::Kind::kToken,
          .name = "alice",
          .mark = mark_of("tuner_1"),
          .roles = Roles(Role::kSubmit) | Role::kQuery,
          .tenant = "vision",
          .made_s = 1'700'000'000,
          .until_s = 1'800'000'000};
}
Entry a_worker() {
  return {.kind = Entry::Kind::kWorker,
          .name = "gpu1",
          .mark = "0A1B",
          .roles = Role::kWork,
          .made_s = 1'700'000'001,
          .until_s = 1'800'000'001,
          .revoked = true};
}

bool same(const Entry& a, const Entry& b) {
  return a.kind == b.kind && a.name == b.name && a.mark == b.mark && a.roles == b.roles &&
         a.tenant == b.tenant && a.made_s == b.made_s && a.until_s == b.until_s && a.revoked == b.revoked;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Register, ComesBackAsItWasWritten) {
  const Register all{{a_token(), a_worker()}};
  const Register back = parse_register(to_json(all)).value();
  ASSERT_EQ(back.entries.size(), 2u);
  EXPECT_TRUE(same(back.entries[0], all.entries[0]));
  EXPECT_TRUE(same(back.entries[1], all.entries[1]));
  EXPECT_THAT(parse_register(to_json({})).value().entries, IsEmpty());
}

// Each number its own, so that none takes another's place in the file.
TEST(Register, KeepsWhatTenantsMayHave) {
  const Register all{{},
                     {{"vision", {.weight = 2.5, .most_leases = 40, .most_jobs = 10, .most_source_mib = 70}},
                      {"speech", {}}}};
  const std::string text = to_json(all);
  EXPECT_THAT(text, HasSubstr("\"most_leases\": 40"));
  EXPECT_THAT(text, HasSubstr("\"most_jobs\": 10"));
  EXPECT_THAT(text, HasSubstr("\"most_source_mib\": 70"));
  EXPECT_THAT(text, HasSubstr("\"weight\": 2.5"));
  EXPECT_EQ(parse_register(text).value().shares, all.shares);
  // As releases before sources wrote it.
  std::string older = text;
  const std::string line = ",\n   \"most_source_mib\": 70";
  ASSERT_NE(older.find(line), std::string::npos) << text;
  older.erase(older.find(line), line.size());
  EXPECT_EQ(parse_register(older).value().shares.at("vision").most_source_mib, 256);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    return parse_register(changed.replace(changed.find(from), from.size(), to)).message();
  };
  EXPECT_THAT(refused("2.5", "-1"), HasSubstr("weight"));
  EXPECT_THAT(refused("40", "1000001"), HasSubstr("most_leases"));
  EXPECT_THAT(refused("10", "-1"), HasSubstr("most_jobs"));
  EXPECT_THAT(refused("70", "-1"), HasSubstr("most_source_mib"));
}

TEST(Register, NamesWhatIsWrong) {
  const auto message = [](const std::string& from, const std::string& to) {
    std::string text = to_json({{a_token(), a_worker()}});
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return parse_register(text.replace(at, from.size(), to)).message();
  };
  EXPECT_THAT(message("\"version\": 1", "\"version\": 2"), HasSubstr("version"));
  EXPECT_THAT(message("\"token\"", "\"robot\""),
              HasSubstr("kind: expected \"token\" or \"worker\", found \"robot\""));
  EXPECT_THAT(message("query,submit", "query,root"),
              HasSubstr("roles: expected words of query, submit, work and admin"));
  EXPECT_THAT(message("\"sha256\"", "\"sha512\""), HasSubstr("sha"));
  EXPECT_THAT(message("\"revoked\": false", "\"revoked\": 0"), HasSubstr("revoked"));
  EXPECT_THAT(message("1800000000", "\"never\""), HasSubstr("until_s"));
  EXPECT_NE(parse_register("").message(), "");
}

TEST(Register, DamagedTextIsRefusedInOneLineOrReadWhole) {
  const std::vector<std::string> seeds{to_json({}), to_json({{a_token(), a_worker()}})};
  static constexpr std::string_view kPieces[] = {"\"token\"", "\"worker\"", "\"entries\"", "\"roles\"",
                                                 "submit",    "admin",      "\"revoked\"", "false"};
  int bad = 0;
  const int good = testing::check_damaged(seeds, kPieces, 41, [&](const std::string& text) {
    const Result<Register> read = parse_register(text);
    if (!read) {
      ++bad;
      EXPECT_TRUE(one_line(read.message())) << read.message();
      return false;
    }
    const Result<Register> again = parse_register(to_json(*read));
    EXPECT_TRUE(again.is_ok()) << again.message();
    if (again) {
      EXPECT_EQ(again->entries.size(), read->entries.size());
    }
    for (const Entry& e : read->entries) EXPECT_FALSE(e.roles.empty()) << "nobody is let in to nothing";
    return true;
  });
  EXPECT_GT(good, 1'000);
  EXPECT_GT(bad, 1'000);
}

TEST(Names, AreWordsOfFewLetters) {
  for (const char* good : {"a", "gpu-1", "A_9", "0"}) EXPECT_TRUE(check_name(good).is_ok()) << good;
  EXPECT_TRUE(check_name(std::string(64, 'x')).is_ok());
  const std::string control("a\nb");
  for (const std::string& bad : {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a.b"),
                                 std::string("../x"), std::string("\xc3\xa9"), control}) {
    const Status status = check_name(bad);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_TRUE(one_line(status.message())) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("name: expected 1 to 64 letters, digits, - and _"));
  }
}

TEST(RolesText, ComesBackAndIsRefusedByWord) {
  EXPECT_EQ(roles_text(Roles::all()), "query,submit,work,admin");
  EXPECT_TRUE(parse_roles("query,submit,work,admin").value() == Roles::all());
  EXPECT_TRUE(parse_roles("admin,query").value() == (Roles(Role::kAdmin) | Role::kQuery));
  EXPECT_EQ(parse_roles("").message(), "roles: expected at least one of query, submit, work and admin");
  EXPECT_THAT(parse_roles("query,root").message(), HasSubstr("found \"root\""));
  EXPECT_FALSE(parse_roles("query,,submit").is_ok());
  EXPECT_FALSE(parse_roles("Query").is_ok());
}

TEST(RolesText, WhoSubmitsMayQueryAndWorkStandsAlone) {
  EXPECT_TRUE(Roles(Role::kSubmit).allow(Role::kQuery));
  EXPECT_TRUE(Roles(Role::kAdmin).allow(Role::kSubmit));
  EXPECT_FALSE(Roles(Role::kAdmin).allow(Role::kWork));
  EXPECT_FALSE(Roles(Role::kQuery).allow(Role::kSubmit));
  for (const Role role : {Role::kQuery, Role::kSubmit, Role::kAdmin})
    EXPECT_FALSE(Roles(Role::kWork).allow(role)) << role_name(role);
}

TEST(Tokens, AreLongAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(make_token());
  EXPECT_EQ(seen.size(), 1'000u);
  EXPECT_EQ(seen.begin()->size(), 6 + 64u) << "256 bits";
  EXPECT_EQ(mark_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

class FolderTest : public ::testing::Test {
 protected:
  IdentityFolder make() { return IdentityFolder::create(path_, 30, 20).value(); }
  // Every file and what it holds.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      all[entry.path().filename().string()] =
          entry.is_regular_file() ? read_text(entry.path()) : "no regular file";
    return all;
  }
  std::vector<nlohmann::json> audit() const {
    std::vector<nlohmann::json> lines;
    std::istringstream in(read_text(path_ + "/audit.log"));
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  bool occurs(const std::string& secret) const {
    for (const auto& [name, text] : files())
      if (text.find(secret) != std::string::npos) return true;
    return false;
  }
  TemporaryFolder temporary_;
  const std::string path_ = temporary_.file("farm.db.identity");
};

int mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
}

TEST_F(FolderTest, LiesBesideTheDatabaseAlsoThroughALink) {
  const std::string db = temporary_.file("farm.db"), link = temporary_.file("link.db");
  std::ofstream(db) << "x";
  std::filesystem::create_symlink(db, link);
  EXPECT_EQ(IdentityFolder::path_of(db), path_);
  EXPECT_EQ(IdentityFolder::path_of(link), path_);
}

TEST_F(FolderTest, WithoutOneItSaysWhatMakesIt) {
  const auto none = IdentityFolder::open(path_);
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(none.message(), path_ + ": there is no farm's identity yet. `tuner admin ca` makes it");
}

TEST_F(FolderTest, IsForItsOwnerOnly) {
  const mode_t before = umask(0);
  const IdentityFolder folder = make();
  (void)folder.let_in_worker("gpu1", kAddress, 1).value();
  (void)folder.let_in_person("alice", Role::kQuery, "", kAddress, 1).value();
  (void)folder.renew_daemon(5);
  EXPECT_EQ(umask(before), 0u) << "the process has its own again";
  EXPECT_EQ(mode_of(path_), 0700);
  std::vector<std::string> names;
  for (const auto& [name, text] : files()) {
    names.push_back(name);
    EXPECT_EQ(mode_of(path_ + "/" + name), 0600) << name;
  }
  EXPECT_THAT(names, ElementsAre("audit.log", "authority.key", "authority.pem", "daemon.key", "daemon.pem",
                                 "register.json"));
}

TEST_F(FolderTest, IsMadeOnce) {
  (void)make();
  const auto before = files();
  const auto again = IdentityFolder::create(path_, 30, 20);
  EXPECT_EQ(again.status().code(), StatusCode::kAborted);
  EXPECT_THAT(again.message(), HasSubstr("there is an identity already. `tuner admin ca --renew`"));
  EXPECT_EQ(files(), before);
}

TEST_F(FolderTest, OfManyWhoMakeItAtOnceOneDoes) {
  std::atomic<int> made{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const auto folder = IdentityFolder::create(path_, 30, 20);
      ++(folder.is_ok() ? made : refused);
      if (!folder) {
        EXPECT_EQ(folder.status().code(), StatusCode::kAborted) << folder.message();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(audit().size(), 1u);
}

TEST_F(FolderTest, ActsAtOnceAreAllKept) {
  const IdentityFolder folder = make();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        EXPECT_TRUE(folder.let_in_person(str("p", i, "-", k), Role::kQuery, "", kAddress, 1).is_ok());
        EXPECT_TRUE(folder.change_share(str("t", i, "-", k), {.weight = 2}).is_ok());
        EXPECT_TRUE(folder.revoke(str("p", i, "-", k)).is_ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Register all = folder.entries().value();
  EXPECT_EQ(all.entries.size(), 40u);
  for (const Entry& e : all.entries) EXPECT_TRUE(e.revoked) << e.name;
  EXPECT_EQ(all.shares.size(), 40u);
  EXPECT_EQ(audit().size(), 121u);
}

TEST_F(FolderTest, HoldsNoTokenAndNoWorkersKey) {
  const IdentityFolder folder = make();
  const auto person = folder.let_in_person("alice", Role::kSubmit, "vision", kAddress, 90).value();
  const auto worker = folder.let_in_worker("gpu1", kAddress, 90).value();
  const DaemonAccess alice = parse_credentials(person.credentials, "alice").value();
  const DaemonAccess gpu1 = parse_credentials(worker.credentials, "gpu1").value();
  ASSERT_EQ(alice.token.size(), 70u);
  EXPECT_TRUE(occurs(person.entry.mark)) << "only its hash";
  EXPECT_FALSE(occurs(alice.token));
  EXPECT_FALSE(occurs(alice.token.substr(6)));
  ASSERT_GT(gpu1.key.size(), 100u);
  EXPECT_FALSE(occurs(gpu1.key.substr(40, 60)));
}

TEST_F(FolderTest, CredentialsSayWhatTheyAreFor) {
  const IdentityFolder folder = make();
  const auto person = folder.let_in_person("alice", Role::kSubmit, "vision", kAddress, 90).value();
  const DaemonAccess alice = parse_credentials(person.credentials, "alice").value();
  EXPECT_EQ(alice.address, kAddress);
  EXPECT_EQ(alice.authority, folder.authority().value());
  EXPECT_EQ(alice.certificate + alice.key + alice.worker, "");
  EXPECT_EQ(mark_of(alice.token), person.entry.mark);
  EXPECT_EQ(person.entry.tenant, "vision");
  EXPECT_TRUE(person.entry.roles == Role::kSubmit);
  EXPECT_EQ(person.entry.until_s - person.entry.made_s, 90 * 86'400);
  EXPECT_THAT(person.credentials, HasSubstr("# alice may submit until "));

  const auto worker = folder.let_in_worker("gpu1", kAddress, 90).value();
  const DaemonAccess gpu1 = parse_credentials(worker.credentials, "gpu1").value();
  EXPECT_EQ(gpu1.worker, "gpu1");
  EXPECT_EQ(gpu1.token, "");
  EXPECT_EQ(end_of_certificate(gpu1.certificate).value(), worker.entry.until_s);
  EXPECT_NEAR(static_cast<double>(worker.entry.until_s - worker.entry.made_s), 90.0 * 86'400, 5);
}

TEST_F(FolderTest, CredentialsOfAFleetSayThatManyShareThem) {
  const auto fleet = make().let_in_worker("nodes", kAddress, 90, /*fleet=*/true).value();
  EXPECT_EQ(fleet.entry.name, "nodes") << "what is revoked, and what the certificate is for";
  EXPECT_THAT(fleet.credentials, HasSubstr("\nworker: nodes.*\n"));
  EXPECT_THAT(fleet.credentials, HasSubstr("# Workers of the fleet nodes until "));
  EXPECT_EQ(parse_credentials(fleet.credentials, "nodes").value().worker, "nodes.*");
}

TEST_F(FolderTest, TheAuditHasALineForEachActAndNoSecret) {
  const IdentityFolder folder = make();
  (void)folder.let_in_worker("gpu1", kAddress, 1).value();
  const auto alice = folder.let_in_person("alice", Role::kSubmit, "vision", kAddress, 1).value();
  EXPECT_EQ(folder.revoke("gpu1").value(), 1);
  EXPECT_TRUE(folder.renew_daemon(5).is_ok());
  EXPECT_TRUE(folder.revoke_mark(alice.entry.mark).is_ok());
  std::vector<std::string> acts;
  for (const nlohmann::json& line : audit()) {
    acts.push_back(line.at("act").get<std::string>() + " " + line.at("name").get<std::string>());
    EXPECT_EQ(line.at("uid").get<uid_t>(), getuid());
    EXPECT_THAT(line.at("time").get<std::string>(), HasSubstr(" UTC"));
  }
  EXPECT_THAT(acts,
              ElementsAre("ca ", "worker gpu1", "token alice", "revoke gpu1", "ca renewed ", "revoke "));
  EXPECT_THAT(audit()[2].at("detail").get<std::string>(), HasSubstr("roles submit, tenant vision, until "));
  const std::string log = read_text(path_ + "/audit.log");
  EXPECT_THAT(log, Not(HasSubstr("tuner_")));
  EXPECT_THAT(log, Not(HasSubstr("KEY")));
}

TEST_F(FolderTest, RevokingEndsAllOfANameAndStaysDone) {
  const IdentityFolder folder = make();
  for (int i = 0; i < 3; ++i) (void)folder.let_in_person("alice", Role::kQuery, "", kAddress, 1).value();
  (void)folder.let_in_person("bob", Role::kQuery, "", kAddress, 1).value();
  const std::string one = folder.entries().value().entries[1].mark;
  EXPECT_TRUE(folder.revoke_mark(one).is_ok());
  const Register then = folder.entries().value();
  for (const Entry& e : then.entries) EXPECT_EQ(e.revoked, e.mark == one) << "one entry, by its mark";
  EXPECT_EQ(folder.revoke("alice").value(), 2);
  const auto again = folder.revoke("alice");
  EXPECT_EQ(again.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(again.message(),
            "revoke: nothing was given out to alice that is still good. See `tuner admin list`");
  EXPECT_EQ(folder.revoke("nobody").status().code(), StatusCode::kNotFound);
  const Register known = folder.entries().value();
  for (const Entry& e : known.entries) EXPECT_EQ(e.revoked, e.name == "alice");
  EXPECT_EQ(audit().size(), 7u) << "what was not done has no line";
}

TEST_F(FolderTest, ANameIsAWorkersOrATokens) {
  const IdentityFolder folder = make();
  (void)folder.let_in_worker("gpu1", kAddress, 1).value();
  EXPECT_EQ(folder.let_in_person("gpu1", Role::kQuery, "", kAddress, 1).status().message(),
            "name: gpu1 is a worker already; choose another one");
  EXPECT_TRUE(folder.let_in_worker("gpu1", kAddress, 1).is_ok()) << "a second certificate, to change over";
  (void)folder.revoke("gpu1");
  EXPECT_TRUE(folder.let_in_person("gpu1", Role::kQuery, "", kAddress, 1).is_ok());
}

TEST_F(FolderTest, TheStampChangesWithEveryAct) {
  const IdentityFolder folder = make();
  std::set<std::string> stamps{folder.stamp()};
  EXPECT_EQ(folder.stamp(), *stamps.begin());
  (void)folder.let_in_worker("gpu1", kAddress, 1).value();
  stamps.insert(folder.stamp());
  (void)folder.let_in_person("alice", Role::kQuery, "", kAddress, 1).value();
  stamps.insert(folder.stamp());
  (void)folder.revoke("alice");
  stamps.insert(folder.stamp());
  (void)folder.renew_daemon(5);
  stamps.insert(folder.stamp());
  EXPECT_EQ(stamps.size(), 5u);
}

TEST_F(FolderTest, RenewingKeepsTheAuthority) {
  const IdentityFolder folder = make();
  const std::string authority = folder.authority().value();
  const KeyAndCertificate before = folder.daemon().value();
  ASSERT_TRUE(folder.renew_daemon(5).is_ok());
  EXPECT_EQ(folder.authority().value(), authority);
  EXPECT_NE(folder.daemon().value().certificate, before.certificate);
  EXPECT_NE(folder.daemon().value().key, before.key);
}

TEST_F(FolderTest, AFullDiskGivesOneLineAndLeavesWhatWas) {
  const IdentityFolder folder = make();
  (void)folder.let_in_person("alice", Role::kQuery, "", kAddress, 1).value();
  std::filesystem::remove(path_ + "/audit.log");
  std::filesystem::create_symlink("/dev/full", path_ + "/audit.log");
  const auto before = files();
  const std::string full = path_ + "/audit.log: No space left on device";
  EXPECT_EQ(folder.let_in_person("bob", Role::kQuery, "", kAddress, 1).status().message(), full);
  EXPECT_EQ(folder.let_in_worker("gpu1", kAddress, 1).status().message(), full);
  EXPECT_EQ(folder.revoke("alice").status().message(), full);
  EXPECT_EQ(files(), before);
}

TEST_F(FolderTest, AFolderThatMayNotBeWrittenGivesOneLineAndStaysAsItWas) {
  const IdentityFolder folder = make();
  if (geteuid() == 0) GTEST_SKIP() << "root may write anything";
  chmod(path_.c_str(), 0500);
  const auto before = files();
  const Status status = folder.renew_daemon(5);
  EXPECT_FALSE(status.is_ok());
  EXPECT_TRUE(one_line(status.message())) << status.message();
  EXPECT_EQ(files(), before);
  chmod(path_.c_str(), 0700);
}

TEST_F(FolderTest, ADamagedRegisterIsNamedAndNotWrittenOver) {
  const IdentityFolder folder = make();
  std::ofstream(path_ + "/register.json") << "{\"version\": 1";
  EXPECT_THAT(folder.let_in_worker("gpu1", kAddress, 1).status().message(),
              HasSubstr(path_ + "/register.json: "));
  EXPECT_THAT(folder.revoke("gpu1").status().message(), HasSubstr(path_ + "/register.json: "));
  EXPECT_EQ(read_text(path_ + "/register.json"), "{\"version\": 1");
}

TEST_F(FolderTest, WhatCannotBeHandedOverIsWorthNothing) {
  const IdentityFolder folder = make();
  const Wish wish{.kind = Entry::Kind::kToken,
                  .name = "alice",
                  .roles = "query",
                  .address = kAddress,
                  .output = temporary_.file("alice.credentials"),
                  .days = 1};
  ASSERT_TRUE(give_out(path_, wish).is_ok());
  EXPECT_EQ(mode_of(wish.output), 0600);
  const std::string written = read_text(wish.output);
  EXPECT_EQ(give_out(path_, wish).status().message(),
            wish.output + ": there is such a file already; choose another name, or remove it");
  EXPECT_EQ(read_text(wish.output), written);
  Wish elsewhere = wish;
  elsewhere.output = temporary_.file("none/alice");
  EXPECT_THAT(give_out(path_, elsewhere).status().message(), HasSubstr("does not exist"));
  elsewhere.output = temporary_.file("other");
  elsewhere.address = "unix:/tmp/x";
  EXPECT_THAT(give_out(path_, elsewhere).status().message(), HasSubstr("--address: expected HOST:PORT"));
  elsewhere.address = kAddress;
  elsewhere.roles = "root";
  EXPECT_THAT(give_out(path_, elsewhere).status().message(), HasSubstr("--roles: expected words of"));
  EXPECT_EQ(folder.entries().value().entries.size(), 1u) << "of these nobody was let in";
  EXPECT_FALSE(std::filesystem::exists(elsewhere.output));
}

TEST_F(FolderTest, TheListSaysHowEachStands) {
  const IdentityFolder folder = make();
  (void)folder.let_in_worker("gpu1", kAddress, 1).value();
  (void)folder.let_in_person("alice", Role::kQuery, "vision", kAddress, 10).value();
  (void)folder.let_in_person("bob", Role::kQuery, "", kAddress, 10).value();
  (void)folder.revoke("bob");
  const auto in_two_days = static_cast<int64_t>(std::time(nullptr)) + 2 * 86'400;
  const auto json = nlohmann::json::parse(listing_json(folder, in_two_days).value());
  ASSERT_EQ(json.at("let_in").size(), 3u);
  EXPECT_EQ(json["let_in"][0].at("state"), "ended");
  EXPECT_EQ(json["let_in"][1].at("state"), "good");
  EXPECT_EQ(json["let_in"][1].at("tenant"), "vision");
  EXPECT_EQ(json["let_in"][2].at("state"), "revoked");
  std::istringstream lines(listing(folder, in_two_days, 80).value());
  std::string line;
  std::getline(lines, line);  // the folder's name is as long as it is
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace tuner::identity
