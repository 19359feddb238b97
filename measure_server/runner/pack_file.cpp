#include "measure_server/runner/pack_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/output_file.h"
#include "measure_server/runner/input_data.h"

namespace tuner {

using nlohmann::json;

namespace {

constexpr char kPackMagic[] = "TUNERPAK";
constexpr uint32_t kPackVersion = 6, kOldestPackVersion = 2;
constexpr int64_t kHeaderBytes = 8 + 4 + 4 + 8 + 32;
constexpr int64_t kMostIndexBytes = int64_t{256} << 20;
constexpr PackPick kPicks[] = {PackPick::kDefault, PackPick::kKnown, PackPick::kEstimate, PackPick::kRandom};

// --- writing ---

class Writer {
 public:
  explicit Writer(const Pack& pack) : pack_(pack) {}

  Status write(const std::string& path) {
    const json index_parts = index();
    // The index holds the offsets of what follows it, so its own size must be known first: offsets are
    // written at a fixed width.
    std::string text = dump(index_parts);
    const int64_t blobs_begin = kHeaderBytes + static_cast<int64_t>(text.size());
    place(blobs_begin);
    text = dump(with_blobs(index_parts));
    return save(path, text);
  }

 private:
  struct Blob {
    const std::string* bytes;
    std::string sha256;
    int64_t offset = 0;
  };

  size_t blob(const std::string& bytes) {
    const std::string digest = sha256_hex(bytes);
    const auto [it, added] = by_digest_.try_emplace(digest, blobs_.size());
    if (added) blobs_.push_back({&bytes, digest});
    return it->second;
  }

  static std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }
  // "0000000000004096": the same number of characters wherever the blob lies.
  static std::string fixed(int64_t n) {
    std::string digits = std::to_string(n);
    return std::string(16 - std::min<size_t>(16, digits.size()), '0') + digits;
  }
  void place(int64_t begin) {
    for (Blob& b : blobs_) {
      b.offset = begin;
      begin += static_cast<int64_t>(b.bytes->size());
    }
  }

  json index() {
    json rounds = json::array();
    for (const PackRound& r : pack_.plan.rounds)
      rounds.push_back({{"repeats", r.repeats}, {"keep", r.keep}, {"keep_at_most", r.keep_at_most}});
    const PackPlan& p = pack_.plan;
    json out = {{"about", pack_.about},
                {"plan",
                 {{"rounds", rounds},
                  {"min_repeat_ms", p.min_repeat_ms},
                  {"run_timeout_s", p.limits.run_timeout_s},
                  {"memory_limit_bytes", p.limits.memory_limit_bytes},
                  {"cut_factor", p.cut_factor},
                  {"deadline_s", p.deadline_s},
                  {"caches", caches_name(p.caches)}}},
                {"tasks", json::array()}};
    for (const PackTask& t : pack_.tasks) out["tasks"].push_back(task(t));
    return with_blobs(std::move(out));
  }

  json task(const PackTask& t) {
    json inputs = json::array(), references = json::array(), candidates = json::array();
    for (const PackTask::Input& i : t.inputs) {
      inputs.push_back({{"arg", i.arg},
                        {"position", i.position},
                        {"count", i.count},
                        {"dtype", std::string(dtype_name(i.dtype))},
                        {"factor", i.factor}});
      if (i.stored) inputs.back()["blob"] = blob(i.bytes);
    }
    for (const PackTask::Reference& r : t.references)
      references.push_back({{"arg", r.arg}, {"blob", blob(r.bytes)}});
    for (const PackCandidate& c : t.candidates) {
      Manifest manifest = c.artifact.manifest;
      manifest.digest = artifact_digest(c.artifact);
      candidates.push_back({{"template", c.template_name},
                            {"template_version", c.template_version},
                            {"config", c.config},
                            {"build_ms", c.build_ms},
                            {"picked", pack_pick_name(c.picked)},
                            {"estimated_ns", c.estimated_ns},
                            {"predicted_rank", c.predicted_rank},
                            {"manifest", manifest.to_json()},
                            {"blob", blob(c.artifact.binary)}});
    }
    json task = {{"workload", t.workload_key},   {"target", t.target},
                 {"input_seed", t.input_seed},   {"inputs", inputs},
                 {"references", references},     {"absolute", t.check.absolute},
                 {"relative", t.check.relative}, {"candidates", candidates}};
    if (!t.checker.empty()) task["checker"] = {{"blob", blob(t.checker)}};
    if (!t.document.empty()) task["document"] = {{"blob", blob(t.document)}};
    if (t.limits)
      task["limits"] = {{"run_timeout_s", t.limits->run_timeout_s},
                        {"memory_limit_bytes", t.limits->memory_limit_bytes}};
    return task;
  }

  json with_blobs(json index) const {
    index["blobs"] = json::array();
    for (const Blob& b : blobs_)
      index["blobs"].push_back(
          {{"offset", fixed(b.offset)}, {"bytes", b.bytes->size()}, {"sha256", b.sha256}});
    return index;
  }

  Status save(const std::string& path, const std::string& index) const {
    ASSIGN_OR_RETURN(OutputFile out, OutputFile::open(path));
    const uint32_t words[2] = {kPackVersion, 0};
    const uint64_t index_bytes = index.size();
    std::string raw_digest;
    const std::string digest = sha256_hex(index);
    for (size_t i = 0; i < digest.size(); i += 2)
      raw_digest += static_cast<char>(std::stoi(digest.substr(i, 2), nullptr, 16));
    const auto bytes_of = [](const auto& number) {
      return std::string_view(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (const std::string_view bytes :
         {std::string_view(kPackMagic, 8), bytes_of(words), bytes_of(index_bytes),
          std::string_view(raw_digest), std::string_view(index)})
      RETURN_IF_ERROR(out.write(bytes));
    for (const Blob& b : blobs_) RETURN_IF_ERROR(out.write(*b.bytes));
    return out.finish();
  }

  const Pack& pack_;
  std::vector<Blob> blobs_;
  std::map<std::string, size_t> by_digest_;
};

}  // namespace

std::string_view pack_pick_name(PackPick pick) {
  switch (pick) {
    case PackPick::kDefault:
      return "default";
    case PackPick::kKnown:
      return "known";
    case PackPick::kEstimate:
      return "estimate";
    case PackPick::kRandom:
      break;
  }
  return "random";
}

std::string PackTask::input_bytes(const Input& input) const {
  if (input.stored) return input.bytes;
  std::vector<float> values = random_values(input_seed, input.position, input.count, input.dtype);
  for (float& value : values) value *= input.factor;
  return element_bytes(values, input.dtype);
}

PackPlan default_pack_plan() {
  return {.rounds = {{.repeats = 3, .keep = 0.25}, {.repeats = 10, .keep_at_most = 10}, {.repeats = 50}}};
}

Status write_pack(const Pack& pack, const std::string& path) {
  if (pack.plan.rounds.empty()) return invalid_argument("pack: the plan has no round");
  for (const PackTask& t : pack.tasks)
    if (t.candidates.empty()) return invalid_argument("pack: task ", t.workload_key, " has no candidate");
  if (pack.tasks.empty()) return invalid_argument("pack: there is no task in it");
  return Writer(pack).write(path);
}

// --- reading ---

// The index, key by key; the first thing wrong is kept.
class PackIndexReader {
 public:
  PackIndexReader(PackFile& out, const json& index, int64_t file_bytes)
      : out_(out), index_(index), file_bytes_(file_bytes) {}

  Status read() {
    try {
      read_blobs();
      read_plan(index_.at("plan"));
      out_.pack_.about = index_.at("about").get<std::string>();
      for (const json& t : index_.at("tasks")) read_task(t);
      if (out_.pack_.tasks.empty()) wrong("there is no task in it");
    } catch (const json::exception& e) {
      wrong(str("its index: ", e.what()));
    }
    return status_;
  }

 private:
  void wrong(const std::string& why) {
    if (status_.is_ok()) status_ = invalid_argument(why);
  }
  double number(const json& j, const char* key, double least, double most) {
    const double value = j.at(key).get<double>();
    if (!std::isfinite(value) || value < least || value > most)
      wrong(str(key, ": found ", value, ", expected ", least, "..", most));
    return value;
  }
  int64_t integer(const json& j, const char* key, int64_t least, int64_t most) {
    const auto value = j.at(key).get<int64_t>();
    if (value < least || value > most) wrong(str(key, ": found ", value, ", expected ", least, "..", most));
    return value;
  }

  void read_blobs() {
    for (const json& b : index_.at("blobs")) {
      PackFile::Blob blob;
      const auto offset = b.at("offset").get<std::string>();
      blob.offset = offset.empty() || offset.find_first_not_of("0123456789") != std::string::npos
                        ? -1
                        : std::strtoll(offset.c_str(), nullptr, 10);
      blob.bytes = integer(b, "bytes", 0, file_bytes_);
      blob.sha256 = b.at("sha256").get<std::string>();
      if (blob.offset < 0 || blob.offset > file_bytes_ - blob.bytes)
        wrong(str("a part lies at ", offset, ", beyond the end of the file: it is cut short"));
      out_.blobs_.push_back(std::move(blob));
    }
  }

  void read_plan(const json& j) {
    PackPlan& p = out_.pack_.plan;
    for (const json& r : j.at("rounds")) {
      PackRound& round = p.rounds.emplace_back();
      round.repeats = static_cast<int>(integer(r, "repeats", 1, static_cast<int64_t>(kRepeats.most)));
      round.keep = number(r, "keep", 0, 1);
      round.keep_at_most = static_cast<int>(integer(r, "keep_at_most", 0, 1 << 30));
    }
    if (p.rounds.empty()) wrong("its plan has no round");
    p.min_repeat_ms = number(j, "min_repeat_ms", 0, kMostMinRepeatMs);
    p.limits = limits(j);
    p.cut_factor = number(j, "cut_factor", 0, 1e9);
    p.deadline_s = number(j, "deadline_s", 0, kMostDeadlineS);
    p.caches = caches(j);
  }

  PackLimits limits(const json& j) {
    return {.run_timeout_s = number(j, "run_timeout_s", 0, kMostRunTimeoutS),
            .memory_limit_bytes = integer(j, "memory_limit_bytes", 1, INT64_MAX)};
  }

  // Version 2 called it "cold", and warm caches "none".
  Caches caches(const json& plan) {
    const bool is_old = !plan.contains("caches");
    auto name = plan.at(is_old ? "cold" : "caches").get<std::string>();
    if (is_old && name == "none") name = caches_name(Caches::kWarm);
    const std::optional<Caches> known = caches_from_name(name);
    if (!known) wrong(str("caches: found \"", name, "\", expected warm, flush or rotate"));
    return known.value_or(Caches::kWarm);
  }

  size_t blob_of(const json& j) {
    const int64_t blob = integer(j, "blob", 0, static_cast<int64_t>(out_.blobs_.size()) - 1);
    return static_cast<size_t>(blob);
  }

  // Packs from before there were other types do not say it.
  DType dtype(const json& j) {
    const std::string name = j.value("dtype", std::string("float32"));
    const std::optional<DType> known = dtype_from_name(name);
    if (!known) wrong(str("dtype: found ", name, ", expected a type such as float32"));
    return known.value_or(DType::kFloat32);
  }

  // Packs of before version 5 do not say it.
  float factor(const json& j) {
    return j.contains("factor") ? static_cast<float>(number(j, "factor", 0, 1)) : 1;
  }

  void read_input(const json& j, PackTask& t) {
    PackTask::Input& input = t.inputs.emplace_back();
    input = {.arg = j.at("arg").get<std::string>(),
             .position = static_cast<int>(integer(j, "position", 0, 1 << 20)),
             .count = integer(j, "count", 0, int64_t{1} << 40),
             .dtype = dtype(j),
             .factor = factor(j),
             .stored = j.contains("blob")};
    std::optional<size_t>& blob = out_.inputs_.back().emplace_back();
    if (!input.stored || !status_.is_ok()) return;
    blob = blob_of(j);
    if (status_.is_ok() && out_.blobs_[*blob].bytes != input.count * dtype_bytes(input.dtype))
      wrong(str("input \"", input.arg, "\": its part has ", out_.blobs_[*blob].bytes, " bytes, expected ",
                input.count, " elements of ", dtype_name(input.dtype)));
  }

  void read_task(const json& j) {
    PackTask& t = out_.pack_.tasks.emplace_back();
    out_.inputs_.emplace_back();
    t.workload_key = j.at("workload").get<std::string>();
    t.target = j.at("target").get<std::string>();
    t.input_seed = j.at("input_seed").get<uint64_t>();
    t.check = {number(j, "absolute", 0, 1e30), number(j, "relative", 0, 1e30)};
    if (j.contains("limits")) t.limits = limits(j.at("limits"));
    for (const json& i : j.at("inputs")) read_input(i, t);
    auto& references = out_.references_.emplace_back();
    for (const json& r : j.at("references")) {
      t.references.push_back({r.at("arg").get<std::string>(), ""});
      references.push_back(blob_of(r));
    }
    auto& checker = out_.checkers_.emplace_back();
    if (j.contains("checker")) checker = blob_of(j.at("checker"));
    auto& document = out_.documents_.emplace_back();
    if (j.contains("document")) document = blob_of(j.at("document"));
    auto& binaries = out_.binaries_.emplace_back();
    for (const json& c : j.at("candidates")) {
      PackCandidate& candidate = t.candidates.emplace_back();
      candidate.template_name = c.at("template").get<std::string>();
      candidate.template_version = static_cast<int>(integer(c, "template_version", 0, 1 << 30));
      candidate.config = c.at("config").get<std::string>();
      candidate.build_ms = number(c, "build_ms", 0, 1e12);
      read_prediction(c, candidate);
      Result<Manifest> manifest = parse_manifest(c.at("manifest").get<std::string>());
      if (!manifest.is_ok()) return wrong(manifest.message());
      candidate.artifact.manifest = *std::move(manifest);
      binaries.push_back(blob_of(c));
    }
    // Arguments become file names.
    const auto is_name = [](const std::string& name) {
      return !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
    };
    for (const auto& input : t.inputs)
      if (!is_name(input.arg)) wrong(str("input \"", input.arg, "\": not a name"));
    for (const auto& reference : t.references)
      if (!is_name(reference.arg)) wrong(str("output \"", reference.arg, "\": not a name"));
  }

  void read_prediction(const json& j, PackCandidate& candidate) {
    const auto name = j.at("picked").get<std::string>();
    const auto pick = std::find_if(std::begin(kPicks), std::end(kPicks),
                                   [&](PackPick p) { return pack_pick_name(p) == name; });
    if (pick == std::end(kPicks)) return wrong(str("picked: found \"", name, "\""));
    candidate.picked = *pick;
    candidate.estimated_ns = number(j, "estimated_ns", 0, 1e18);
    candidate.predicted_rank = static_cast<int>(integer(j, "predicted_rank", -1, 1 << 30));
  }

  PackFile& out_;
  const json& index_;
  const int64_t file_bytes_;
  Status status_;
};

namespace {

Status read_exactly(int fd, int64_t offset, char* to, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, to, static_cast<size_t>(bytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("cannot be read: ", n == 0 ? "it is cut short" : std::strerror(errno));
    to += n, offset += n, bytes -= n;
  }
  return Status::ok();
}

std::string hex(std::string_view raw) {
  std::string out;
  for (const char c : raw) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    out += two;
  }
  return out;
}

}  // namespace

Result<PackFile> PackFile::open(const std::string& path) {
  PackFile file;
  file.path_ = path;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO is no pack
  if (fd < 0) return invalid_argument(path, ": cannot be opened: ", std::strerror(errno));
  file.fd_ = std::shared_ptr<const int>(new int(fd), [](const int* p) {
    ::close(*p);
    delete p;
  });
  struct stat st;
  char header[kHeaderBytes];
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < kHeaderBytes ||
      !read_exactly(fd, 0, header, kHeaderBytes).is_ok() || std::memcmp(header, kPackMagic, 8) != 0)
    return invalid_argument(path, ": not a pack; expected a file written by `tuner pack`");
  uint32_t version = 0;
  uint64_t index_bytes = 0;
  std::memcpy(&version, header + 8, sizeof version);
  std::memcpy(&index_bytes, header + 16, sizeof index_bytes);
  if (version < kOldestPackVersion || version > kPackVersion)
    return invalid_argument(path, ": pack version ", version, ", this runner reads ", kPackVersion,
                            "; use the runner of the tuner that wrote it");
  if (index_bytes > static_cast<uint64_t>(std::min<int64_t>(st.st_size - kHeaderBytes, kMostIndexBytes)))
    return invalid_argument(path, ": damaged: its index would be larger than the file");
  std::string index(index_bytes, '\0');
  RETURN_IF_ERROR(read_exactly(fd, kHeaderBytes, index.data(), static_cast<int64_t>(index_bytes))
                      .with_context(path + ": "));
  file.id_ = sha256_hex(index);
  if (file.id_ != hex({header + 24, 32}))
    return invalid_argument(path, ": damaged: the index is not what was written; copy it again");
  const json parsed = json::parse(index, nullptr, /*allow_exceptions=*/false);
  RETURN_IF_ERROR(PackIndexReader(file, parsed, st.st_size).read().with_context(path + ": "));
  return file;
}

Result<std::string> PackFile::read(size_t blob) const {
  const Blob& b = blobs_[blob];
  std::string bytes(static_cast<size_t>(b.bytes), '\0');
  RETURN_IF_ERROR(read_exactly(*fd_, b.offset, bytes.data(), b.bytes).with_context(path_ + ": "));
  if (sha256_hex(bytes) != b.sha256)
    return failed(path_, ": damaged: ", b.bytes, " bytes at ", b.offset,
                  " are not what was written; copy it again");
  return bytes;
}

Result<Artifact> PackFile::artifact(size_t task, size_t candidate) const {
  ASSIGN_OR_RETURN(std::string binary, read(binaries_[task][candidate]));
  return Artifact{pack_.tasks[task].candidates[candidate].artifact.manifest, std::move(binary)};
}

Result<std::string> PackFile::reference(size_t task, size_t output) const {
  return read(references_[task][output]);
}

Result<std::string> PackFile::checker(size_t task) const {
  if (!checkers_[task]) return std::string();
  return read(*checkers_[task]);
}

Result<std::string> PackFile::input(size_t task, size_t input) const {
  if (inputs_[task][input]) return read(*inputs_[task][input]);
  return pack_.tasks[task].input_bytes(pack_.tasks[task].inputs[input]);
}

Result<std::string> PackFile::document(size_t task) const {
  if (!documents_[task]) return std::string();
  return read(*documents_[task]);
}

Status PackFile::verify() const {
  for (size_t blob = 0; blob < blobs_.size(); ++blob)
    if (const Result<std::string> bytes = read(blob); !bytes.is_ok())
      return invalid_argument(bytes.message());
  return Status::ok();
}

}  // namespace tuner
