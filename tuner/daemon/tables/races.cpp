#include "tuner/daemon/tables/races.h"

#include <algorithm>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner {

std::string Races::id_of(std::string_view what, int64_t wall_us) { return str(what, " @", wall_us); }

void Races::begin(const std::string& id, Race race, int64_t now_ms) {
  races_[id] = {std::move(race), now_ms};
}

Races::Race* Races::open(const std::string& id) {
  const auto found = races_.find(id);
  return found == races_.end() || found->second.race.ended ? nullptr : &found->second.race;
}

void Races::leased(const std::string& id, int64_t now_ms) {
  if (Race* const race = open(id)) race->begun_ms = now_ms;
}

bool Races::take_course(const std::string& id, const RaceCourse& course) {
  Race* const race = open(id);
  if (race == nullptr) return false;
  race->course = course;
  return true;
}

void Races::won(const std::string& id, const RaceRow& result) {
  Race* const race = open(id);
  if (race == nullptr) return;
  race->ended = true;
  if (!result.certified) race->uncertified_why = result.uncertified_why;
  if (race->job_id.empty()) race->result = result;
}

void Races::failed(const std::string& id, const std::string& why) {
  Race* const race = open(id);
  if (race == nullptr) return;
  race->ended = true;
  race->error = why;
}

std::vector<std::string> Races::give_up_unserved(const std::string& job_id, const Served& served,
                                                 int64_t now_ms) {
  std::vector<std::string> given_up;
  for (auto& [id, entry] : races_) {
    if (entry.race.job_id != job_id || entry.race.ended) continue;
    if (served(entry.race.needs)) entry.served_ms = now_ms;
    if (now_ms - entry.served_ms <= wait_ms_) continue;
    failed(id, "the workers that could have run it have gone");
    given_up.push_back(id);
  }
  return given_up;
}

size_t Races::open_races() const {
  return static_cast<size_t>(
      std::ranges::count_if(races_, [](const auto& item) { return !item.second.race.ended; }));
}

const Races::Race* Races::find(const std::string& id) const {
  const auto found = races_.find(id);
  return found == races_.end() ? nullptr : &found->second.race;
}

const Races::Race* Races::under_way(const std::string& id) const {
  const Race* const race = find(id);
  return race == nullptr || race->ended ? nullptr : race;
}

std::vector<const Races::Race*> Races::of_job(const std::string& job_id) const {
  std::vector<const Race*> all;
  for (const auto& [id, entry] : races_)
    if (entry.race.job_id == job_id) all.push_back(&entry.race);
  return all;
}

std::vector<Races::Race> Races::take_ended(const std::string& job_id) {
  std::vector<Race> ended;
  for (auto it = races_.begin(); it != races_.end();) {
    Race& race = it->second.race;
    if (race.job_id != job_id || !race.ended) {
      ++it;
      continue;
    }
    ended.push_back(std::move(race));
    it = races_.erase(it);
  }
  return ended;
}

void Races::forget(const std::string& id) { races_.erase(id); }

void Races::forget_job(const std::string& job_id) {
  std::erase_if(races_, [&](const auto& item) { return item.second.race.job_id == job_id; });
}

}  // namespace tuner
