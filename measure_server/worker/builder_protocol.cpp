#include "measure_server/worker/builder_protocol.h"

#include <nlohmann/json.hpp>

namespace tuner {

using nlohmann::json;

// As text, by the library's names for such functions.
static void to_json(json& j, BuildOutcome outcome) { j = build_outcome_name(outcome); }
static void from_json(const json& j, BuildOutcome& outcome) {
  const std::optional<BuildOutcome> known = build_outcome_from_name(j.get<std::string>());
  if (!known) throw json::other_error::create(501, "outcome: found " + j.dump(), &j);
  outcome = *known;
}

// A worker whose program was replaced while it runs may ask without the newest of them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(BuildRequest, kind, family, device, directory, cache_bytes,
                                                workload_key, target, template_name, config, template_version,
                                                input_seed, trial_id, candidate, threads)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply::Data, arg, path)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply::Set, inputs, references, seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply::BackendHere, family, toolchain, unable, targets, features)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply::Compiler, family, toolchain)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply::SourceCompiler, name, toolchain)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply::Template, name, version)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildReply, outcome, message, digest, build_ms, toolchain, direct, found,
                                   backends, compilers, source_compilers, templates, absolute, relative,
                                   inputs, references, others)

namespace {

template <class T>
Result<T> parse(std::string_view text, const char* what) {
  try {
    return json::parse(text).get<T>();
  } catch (const json::exception& e) {
    return invalid_argument(what, ": ", e.what());
  }
}

// Messages of compilers may hold anything; JSON holds UTF-8.
template <class T>
std::string dump(const T& value) {
  return json(value).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const BuildRequest& request) { return dump(request); }
std::string to_json(const BuildReply& reply) { return dump(reply); }
Result<BuildRequest> parse_build_request(std::string_view json) {
  return parse<BuildRequest>(json, "build request");
}
Result<BuildReply> parse_build_reply(std::string_view json) { return parse<BuildReply>(json, "build reply"); }

}  // namespace tuner
