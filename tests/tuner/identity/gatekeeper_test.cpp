// Who is let in, by which way, and what a call that is not answered is told. The folder changes while the
// gatekeeper looks at it.
#include "tuner/identity/gatekeeper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "proto/daemon_access.h"
#include "tests/support/temporary_folder.h"

namespace tuner::identity {
namespace {

using transport::Peer;
constexpr char kAsk[] =
    ": ask the farm's administrator for credentials (tuner admin token), and give them as --daemon FILE";
constexpr char kNew[] = ": `tuner admin worker` on the daemon's host makes a new one";
constexpr char kNobody[] = "this daemon answers nobody it does not know";

Peer plain() { return {}; }
Peer local(uid_t uid) { return {.way = Peer::Way::kUnix, .uid = uid}; }
Peer tls() { return {.way = Peer::Way::kTls}; }

class GatekeeperTest : public ::testing::Test {
 protected:
  static constexpr uid_t kStranger = 54'321;

  IdentityFolder make() { return IdentityFolder::create(path_, 30, 20).value(); }
  // Another second: the folder is looked at again.
  void next_second() { ++now_s_; }

  // The caller's name, or why it is refused.
  std::string who(const Peer& peer, const std::string& authorization = "") {
    Refusal refusal;
    last_ = keeper_.caller(peer, authorization, refusal);
    EXPECT_EQ(last_.has_value(), refusal.why.empty());
    if (!last_) {
      EXPECT_TRUE(refusal.unknown);
    }
    return last_ ? last_->name : refusal.text();
  }
  std::string give_token(const IdentityFolder& folder, const std::string& name, Roles roles,
                         const std::string& tenant = "", int days = 1) {
    const auto in = folder.let_in_person(name, roles, tenant, "farm:1", days).value();
    return "Bearer " + parse_credentials(in.credentials, name).value().token;
  }
  // As the gate tells of a connection with this certificate.
  static Peer worker(const IdentityFolder& folder, const std::string& name, int days = 1) {
    const Entry entry = folder.let_in_worker(name, "farm:1", days).value().entry;
    return {.way = Peer::Way::kTls,
            .certificate = kWorkerUri + name,
            .serial = entry.mark,
            .not_after_s = entry.until_s};
  }

  TemporaryFolder temporary_;
  const std::string path_ = temporary_.file("identity");
  int64_t now_s_ = std::time(nullptr);
  Gatekeeper keeper_{path_, [this] { return now_s_; }};
  std::optional<Caller> last_;
};

TEST_F(GatekeeperTest, TheDaemonsUserAndRootMayEverythingOnAUnixSocket) {
  for (const bool identity : {false, true}) {
    if (identity) (void)make();
    next_second();
    for (const uid_t uid : {geteuid(), uid_t{0}}) {
      EXPECT_EQ(who(local(uid)), "the local user");
      EXPECT_TRUE(last_->roles == Roles::all());
      EXPECT_EQ(last_->worker, "");
      EXPECT_FALSE(last_->tenant.has_value());
    }
    EXPECT_EQ(who(local(kStranger)), std::string("user 54321 is not the daemon's") + kAsk);
  }
}

TEST_F(GatekeeperTest, OtherUsersOfAUnixSocketNeedAToken) {
  const std::string token = give_token(make(), "alice", Role::kQuery);
  EXPECT_EQ(who(local(kStranger), token), "alice");
  EXPECT_TRUE(last_->roles == Role::kQuery);
}

TEST_F(GatekeeperTest, LoopbackIsOpenWithoutAnIdentityOnly) {
  EXPECT_EQ(who(plain()), "the local user");
  const IdentityFolder folder = make();
  EXPECT_EQ(who(plain()), "the local user") << "it looks once a second";
  next_second();
  EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk) << "an identity that appears counts at once";
  EXPECT_EQ(who(plain(), "Bearer tuner_made_up"), std::string("the token is not known here") + kAsk);
  EXPECT_EQ(who(plain(), give_token(folder, "bob", Role::kQuery)), "bob") << "given out in this second";
}

TEST_F(GatekeeperTest, TlsAloneIsNobody) {
  EXPECT_EQ(who(tls()), std::string(kNobody) + kAsk) << "also without an identity";
  (void)make();
  next_second();
  EXPECT_EQ(who(tls()), std::string(kNobody) + kAsk);
}

TEST_F(GatekeeperTest, ATokenSaysWhoWhatAndWhose) {
  const IdentityFolder folder = make();
  const std::string alice = give_token(folder, "alice", Roles(Role::kSubmit) | Role::kQuery, "vision");
  const std::string worker = give_token(folder, "old-gpu", Role::kWork);
  const std::string admin = give_token(folder, "root", Role::kAdmin, "vision");
  EXPECT_EQ(who(tls(), alice), "alice");
  EXPECT_TRUE(last_->roles == (Roles(Role::kSubmit) | Role::kQuery));
  EXPECT_EQ(last_->tenant, "vision");
  EXPECT_EQ(last_->worker, "");
  EXPECT_EQ(who(tls(), worker), "old-gpu");
  EXPECT_EQ(last_->worker, "old-gpu") << "a worker without a certificate is that one only";
  EXPECT_EQ(who(tls(), admin), "root");
  EXPECT_FALSE(last_->tenant.has_value()) << "who administers sees all";
}

TEST_F(GatekeeperTest, ATokenIsKnownByEveryLetter) {
  const std::string token = give_token(make(), "alice", Role::kQuery);
  const std::string unknown = std::string("the token is not known here") + kAsk;
  std::string changed = token;
  changed.back() = changed.back() == '0' ? '1' : '0';
  EXPECT_EQ(who(tls(), changed), unknown);
  EXPECT_EQ(who(tls(), token + " "), unknown);
  EXPECT_EQ(who(tls(), token.substr(7)), unknown) << "without Bearer";
  EXPECT_EQ(who(tls(), "bearer " + token.substr(7)), unknown);
  EXPECT_EQ(who(tls(), "Basic YWxpY2U6"), unknown);
  EXPECT_EQ(who(tls(), "Bearer "), unknown);
  EXPECT_EQ(who(tls(), "Bearer " + mark_of(token.substr(7))), unknown)
      << "what the register holds opens nothing";
  EXPECT_EQ(who(tls(), token), "alice");
}

TEST_F(GatekeeperTest, ATokenEndsToTheSecond) {
  const std::string token = give_token(make(), "alice", Role::kQuery);
  const int64_t until_s = IdentityFolder::open(path_)->entries().value().entries[0].until_s;
  now_s_ = until_s - 1;
  EXPECT_EQ(who(tls(), token), "alice");
  now_s_ = until_s;
  EXPECT_EQ(who(tls(), token), "the token of alice ended " + date_text(until_s) + kAsk);
}

TEST_F(GatekeeperTest, WhatIsRevokedCountsFromTheNextSecondOn) {
  const IdentityFolder folder = make();
  const std::string token = give_token(folder, "alice", Role::kQuery);
  const Peer gpu1 = worker(folder, "gpu1");
  EXPECT_EQ(who(tls(), token), "alice");
  EXPECT_EQ(who(gpu1), "worker gpu1");
  (void)folder.revoke("alice");
  (void)folder.revoke("gpu1");
  next_second();
  EXPECT_EQ(who(tls(), token), std::string("the token of alice was revoked") + kAsk);
  EXPECT_EQ(who(gpu1), std::string("the certificate of worker gpu1 was revoked") + kNew);
}

TEST_F(GatekeeperTest, ACertificateIsOneWorkerAndNoOther) {
  const Peer gpu1 = worker(make(), "gpu1");
  EXPECT_EQ(who(gpu1), "worker gpu1");
  EXPECT_TRUE(last_->roles == Role::kWork);
  EXPECT_EQ(last_->worker, "gpu1");
  for (const char* own : {"gpu1", "gpu1.", "gpu1.2", "gpu1.a.b"}) EXPECT_TRUE(last_->may_be(own)) << own;
  for (const char* other : {"", "gpu", "gpu10", "gpu1-2", "GPU1", "gpu2", " gpu1", ".gpu1"})
    EXPECT_FALSE(last_->may_be(other)) << other;
}

TEST_F(GatekeeperTest, ACertificateMustBeGoodAndGivenOutHere) {
  const IdentityFolder folder = make();
  const Peer good = worker(folder, "gpu1");
  Peer peer = good;
  peer.certificate_fault = "unable to get local issuer certificate";
  EXPECT_EQ(who(peer),
            std::string("the certificate is not one of this farm's, or not good any more (unable to get "
                        "local issuer certificate)") +
                kNew);
  peer = good;
  peer.certificate = "tuner://robot/gpu1";
  EXPECT_EQ(who(peer), std::string("the certificate is not a worker's") + kNew);
  peer = good;
  peer.serial = "1234";
  EXPECT_EQ(who(peer), std::string("the certificate of worker gpu1 is not in this daemon's register") + kNew);
  now_s_ = good.not_after_s;
  EXPECT_EQ(who(good), "the certificate of worker gpu1 ended " + date_text(good.not_after_s) + kNew);
  now_s_ = good.not_after_s - 1;
  EXPECT_EQ(who(good), "worker gpu1");
}

TEST_F(GatekeeperTest, ATokenThatIsShownCountsAlone) {
  const IdentityFolder folder = make();
  const Peer gpu1 = worker(folder, "gpu1");
  EXPECT_EQ(who(gpu1, give_token(folder, "alice", Role::kQuery)), "alice");
  EXPECT_EQ(who(gpu1, "Bearer tuner_none"), std::string("the token is not known here") + kAsk);
}

TEST_F(GatekeeperTest, AnIdentityThatVanishesStillCounts) {
  const IdentityFolder folder = make();
  const std::string token = give_token(folder, "alice", Role::kQuery);
  EXPECT_EQ(who(plain(), token), "alice");
  std::filesystem::rename(path_, path_ + ".away");
  for (int i = 0; i < 3; ++i) {
    next_second();
    EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk) << "a disk that fails opens no doors";
    EXPECT_EQ(who(plain(), token), "alice");
  }
  std::filesystem::rename(path_ + ".away", path_);
  (void)folder.revoke("alice");
  next_second();
  EXPECT_EQ(who(plain(), token), std::string("the token of alice was revoked") + kAsk);
}

TEST_F(GatekeeperTest, ADamagedRegisterLeavesTheFormerOne) {
  const IdentityFolder folder = make();
  const std::string token = give_token(folder, "alice", Role::kQuery);
  EXPECT_EQ(who(plain(), token), "alice");
  for (const char* text : {"", "{", "{\"version\": 1, \"entries\": [{}]}"}) {
    std::ofstream(path_ + "/register.json") << text;
    next_second();
    EXPECT_EQ(who(plain(), token), "alice") << text;
    EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk) << text;
  }
}

TEST_F(GatekeeperTest, ARegisterThatWasNeverReadLetsNobodyIn) {
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/register.json") << "{";
  EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk);
  next_second();
  EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk);
  EXPECT_EQ(who(local(geteuid())), "the local user") << "who could mend it";
}

// Else whoever fills the disk at the right moment has a farm that is open.
TEST_F(GatekeeperTest, ADamagedOneThatAppearsWhileItRunsLetsNobodyIn) {
  EXPECT_EQ(who(plain()), "the local user");
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/register.json") << "{";
  next_second();
  EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk);
}

TEST_F(GatekeeperTest, OneThatMayNotBeLookedIntoLetsNobodyIn) {
  if (geteuid() == 0) GTEST_SKIP() << "root may look into anything";
  (void)make();
  std::filesystem::permissions(path_, std::filesystem::perms::none);
  EXPECT_EQ(who(plain()), std::string(kNobody) + kAsk);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
}

TEST_F(GatekeeperTest, ChangesAreToldOnce) {
  const IdentityFolder folder = make();
  int told = 0;
  keeper_.on_change([&] { ++told; });
  (void)who(plain());
  EXPECT_EQ(told, 0) << "the first look is no change";
  next_second();
  (void)who(plain());
  EXPECT_EQ(told, 0);
  ASSERT_TRUE(folder.renew_daemon(5).is_ok());
  for (int i = 0; i < 3; ++i) {
    next_second();
    (void)who(plain());
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(keeper_.daemon_certificate().value().certificate, folder.daemon().value().certificate);
  EXPECT_EQ(keeper_.authority().value(), folder.authority().value());
}

TEST_F(GatekeeperTest, ACallNeedsItsRole) {
  const auto refusal = [](Roles roles, std::string_view method) {
    Refusal why;
    const bool may = Gatekeeper::may({.name = "alice", .roles = roles}, method, why);
    EXPECT_EQ(may, why.why.empty());
    EXPECT_FALSE(why.unknown);
    return why.why;
  };
  EXPECT_EQ(refusal(Role::kQuery, "/tuner.v1.Jobs/Submit"), "alice may query; Submit needs the role submit");
  EXPECT_EQ(refusal(Roles(Role::kQuery) | Role::kSubmit, "/tuner.v1.Workers/Sync"),
            "alice may query,submit; Sync needs the role work");
  EXPECT_EQ(refusal(Role::kSubmit, "/tuner.v1.Jobs/Query"), "");
  EXPECT_EQ(refusal(Role::kAdmin, "/tuner.v1.Jobs/Submit"), "");
}

}  // namespace
}  // namespace tuner::identity
