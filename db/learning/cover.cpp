#include "db/learning/cover.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tuner {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kMostConfigs = 4096, kMostNodes = 65536;

json node_json(const CoverTree::Node& n) {
  if (n.use >= 0) return {{"use", n.use}};
  json j{{n.is_number ? "number" : "word", n.feature}, {"yes", n.yes}, {"no", n.no}};
  if (n.is_number)
    j["at_most"] = n.at_most;
  else
    j["is"] = n.is;
  return j;
}

// Reads members of one object; the first thing wrong is the error.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) status_ = invalid_argument("cover: ", where_, ": expected an object");
  }
  const json* find(const char* name) const {
    if (!status_.is_ok()) return nullptr;
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  void read(const char* name, std::string& value) {
    const json* j = find(name);
    if (j != nullptr && j->is_string())
      value = j->get<std::string>();
    else
      refuse(name, "expected a text");
  }
  template <class T>
  void read(const char* name, T& value, int64_t low, int64_t high) {
    const json* j = find(name);
    // Beyond 2^63 it is unsigned, and not within any range asked for here.
    if (j == nullptr || !j->is_number_integer() ||
        (j->is_number_unsigned() && j->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) ||
        j->get<int64_t>() < low || j->get<int64_t>() > high)
      return refuse(name, str("expected an integer from ", low, " to ", high));
    value = static_cast<T>(j->get<int64_t>());
  }
  void read_fraction(const char* name, double& value) {
    const json* j = find(name);
    if (j == nullptr || !j->is_number() || !(j->get<double>() >= 0) || !(j->get<double>() <= 1))
      return refuse(name, "expected a number from 0 to 1");
    value = j->get<double>();
  }
  const json* list(const char* name, size_t most) {
    const json* j = find(name);
    if (j != nullptr && j->is_array() && !j->empty() && j->size() <= most) return j;
    refuse(name, str("expected a list of 1 to ", most));
    return nullptr;
  }
  void refuse(const std::string& name, const std::string& expected) {
    if (status_.is_ok()) status_ = invalid_argument("cover: ", where_, name, ": ", expected);
  }
  const Status& status() const { return status_; }

 private:
  const json& object_;
  std::string where_;
  Status status_;
};

Result<CoverTree::Node> read_node(const json& j, int position, int nodes, int configs) {
  CoverTree::Node node;
  Members m(j, str("tree[", position, "]."));
  if (m.find("use") != nullptr) {
    m.read("use", node.use, 0, configs - 1);
  } else {
    node.is_number = m.find("number") != nullptr;
    m.read(node.is_number ? "number" : "word", node.feature);
    if (node.is_number)
      m.read("at_most", node.at_most, INT64_MIN, INT64_MAX);
    else
      m.read("is", node.is);
    m.read("yes", node.yes, position + 1, nodes - 1);
    m.read("no", node.no, position + 1, nodes - 1);
  }
  if (!m.status()) return m.status();
  return node;
}

}  // namespace

const CoverConfig& Cover::choose(std::string_view workload_key) const {
  return configs[static_cast<size_t>(tree.choose(features_of_key(workload_key)))];
}

std::string cover_to_json(const Cover& cover) {
  json configs = json::array(), tree = json::array();
  for (const CoverConfig& c : cover.configs)
    configs.push_back(
        {{"template", c.template_name}, {"template_version", c.template_version}, {"config", c.config}});
  for (const CoverTree::Node& n : cover.tree.nodes) tree.push_back(node_json(n));
  json j{{"version", kVersion}, {"op", cover.op},           {"target", cover.target}, {"configs", configs},
         {"tree", tree},        {"columns", cover.columns}, {"worst", cover.worst},   {"mean", cover.mean}};
  if (cover.left_out.columns > 0)
    j["left_out"] = {{"columns", cover.left_out.columns},
                     {"known", cover.left_out.known},
                     {"worst", cover.left_out.worst},
                     {"mean", cover.left_out.mean}};
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Cover> cover_from_json(std::string_view text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (j.is_discarded()) return invalid_argument("cover: expected JSON");
  Cover cover;
  Members m(j, "");
  int version = 0;
  m.read("version", version, kVersion, kVersion);
  m.read("op", cover.op);
  m.read("target", cover.target);
  m.read("columns", cover.columns, 1, INT32_MAX);
  m.read_fraction("worst", cover.worst);
  m.read_fraction("mean", cover.mean);
  const json* configs = m.list("configs", kMostConfigs);
  const json* tree = m.list("tree", kMostNodes);
  if (!m.status()) return m.status();
  for (size_t i = 0; i < configs->size(); ++i) {
    Members c((*configs)[i], str("configs[", i, "]."));
    CoverConfig& config = cover.configs.emplace_back();
    c.read("template", config.template_name);
    c.read("template_version", config.template_version, 0, INT32_MAX);
    c.read("config", config.config);
    if (!c.status()) return c.status();
  }
  const auto nodes = static_cast<int>(tree->size());
  for (int i = 0; i < nodes; ++i) {
    ASSIGN_OR_RETURN(CoverTree::Node node,
                     read_node((*tree)[static_cast<size_t>(i)], i, nodes, static_cast<int>(configs->size())));
    cover.tree.nodes.push_back(std::move(node));
  }
  if (const json* left = m.find("left_out")) {
    Members l(*left, "left_out.");
    l.read("columns", cover.left_out.columns, 1, INT32_MAX);
    l.read("known", cover.left_out.known, 0, INT32_MAX);
    l.read_fraction("worst", cover.left_out.worst);
    l.read_fraction("mean", cover.left_out.mean);
    if (!l.status()) return l.status();
  }
  return cover;
}

}  // namespace tuner
