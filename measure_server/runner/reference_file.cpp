#include "measure_server/runner/reference_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/output_file.h"

namespace tuner {

static_assert(std::endian::native == std::endian::little, "the format is written as it lies in memory");

namespace {

constexpr char kMagic[8] = {'T', 'U', 'N', 'E', 'R', 'R', 'E', 'F'};
constexpr uint32_t kVersion = 1, kOwnTolerance = 2;
constexpr uint64_t kMaxRank = 16;
constexpr int64_t kSamples = 4096;

// Word-wise FNV-1a in four lanes: finds torn and altered files at memory speed; no defence against malice.
uint64_t hash_words(const char* bytes, size_t size) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t lane[4] = {0xcbf29ce484222325, 1, 2, 3};
  const size_t words = size / 8;
  for (size_t i = 0; i < words; ++i) {
    uint64_t w;
    std::memcpy(&w, bytes + 8 * i, 8);
    uint64_t& l = lane[i % 4];
    l = (l ^ w) * kPrime;
    l ^= l >> 29;
  }
  uint64_t h = size;
  for (uint64_t l : lane) h = ((h ^ l) * kPrime) ^ (h >> 31);
  return h;
}

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr uint32_t kChecksumsOfLastDimension = 2;  // what kChecksums was written as before

// How many columns make the matrix about square: rows and columns then take the least room.
int64_t columns_of(const std::vector<int64_t>& shape, int64_t count) {
  const double square = std::sqrt(static_cast<double>(count));
  const auto distance = [&](int64_t columns) {
    return std::fabs(std::log(static_cast<double>(columns) / square));
  };
  int64_t best = shape.empty() ? 1 : shape.back(), columns = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    columns *= shape[d];
    if (distance(columns) < distance(best)) best = columns;
  }
  constexpr double kTooLong = 8;
  return distance(best) > std::log(kTooLong) ? static_cast<int64_t>(std::ceil(square)) : best;
}

// The last row may be shorter.
int64_t rows_of(int64_t count, int64_t columns) { return (count + columns - 1) / columns; }

// All corners, then every border of every dimension in turn, then anywhere. Sorted and without repeats.
std::vector<uint64_t> sampled_indices(const std::vector<int64_t>& shape, int64_t count) {
  std::vector<uint64_t> picked;
  if (count <= kSamples) {
    for (int64_t i = 0; i < count; ++i) picked.push_back(i);
    return picked;
  }
  const int rank = static_cast<int>(shape.size());
  std::mt19937_64 random(20250117);
  const auto flat = [&](const std::vector<int64_t>& at) {
    uint64_t index = 0;
    for (int d = 0; d < rank; ++d) index = index * shape[d] + at[d];
    return index;
  };
  std::vector<int64_t> at(rank);
  for (uint32_t corner = 0; corner < (1u << std::min(rank, 8)); ++corner) {
    for (int d = 0; d < rank; ++d) at[d] = (corner >> std::min(d, 7)) & 1 ? shape[d] - 1 : 0;
    picked.push_back(flat(at));
  }
  const int on_each_border = static_cast<int>(kSamples / 2 / (2 * int64_t{rank}));
  const auto anywhere = [&] {
    for (int d = 0; d < rank; ++d) at[d] = static_cast<int64_t>(random() % static_cast<uint64_t>(shape[d]));
  };
  for (int d = 0; d < rank; ++d) {
    for (int i = 0; i < 2 * on_each_border; ++i) {
      anywhere();
      at[d] = i % 2 ? shape[d] - 1 : 0;
      picked.push_back(flat(at));
    }
  }
  const auto unique = [&] {
    std::sort(picked.begin(), picked.end());
    picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  };
  unique();
  while (static_cast<int64_t>(picked.size()) < kSamples) {
    for (int64_t i = std::ssize(picked); i < kSamples; ++i) {
      anywhere();
      picked.push_back(flat(at));
    }
    unique();
  }
  return picked;
}

void add(ReferenceView::Sums& s, double x) {
  s.sum += x;
  s.abs_sum += std::fabs(x);
  s.square_sum += x * x;
}

// Infinite where the type holds nothing so large.
double within_type(double x, DType type) {
  constexpr double kBeyondFloat16 = 65520, kBeyondFloat32 = 0x1.ffffffp127;  // from these on they round up
  const bool is_beyond = (type == DType::kFloat16 && std::fabs(x) >= kBeyondFloat16) ||
                         (type == DType::kFloat32 && std::fabs(x) >= kBeyondFloat32);
  return is_beyond ? std::copysign(std::numeric_limits<double>::infinity(), x) : x;
}

// As an output of the type holds it. Wider types hold more digits than a tolerance asks for.
double as_stored(double number, DType type) {
  const double x = within_type(number, type);
  if (!std::isfinite(x)) return x;
  if (type == DType::kBFloat16) return rounded_to_bfloat16(static_cast<float>(x));
  return type == DType::kFloat16 ? rounded_to_float16(static_cast<float>(x)) : x;
}

}  // namespace

Status write_reference(const std::string& path, std::span<const double> answer,
                       const std::vector<int64_t>& shape, ReferenceKind kind, const OutputFacts& output) {
  int64_t count = 1;
  for (int64_t d : shape) {
    if (d < 1) return invalid_argument(path, ": a reference needs dimensions >= 1, found ", d);
    count *= d;
  }
  if (count != static_cast<int64_t>(answer.size()) || shape.size() > kMaxRank)
    return invalid_argument(path, ": the shape has ", count, " elements, the answer ", answer.size());

  std::string out(kMagic, sizeof kMagic);
  append(out, output.tolerance ? kOwnTolerance : kVersion);
  append(out, static_cast<uint32_t>(kind));
  append(out, static_cast<uint64_t>(shape.size()));
  for (int64_t d : shape) append(out, d);
  if (output.tolerance) {
    append(out, output.tolerance->absolute);
    append(out, output.tolerance->relative);
  }
  if (kind == ReferenceKind::kFull) {
    for (const double x : answer) append(out, within_type(x, output.stored_as));
  } else {
    const int64_t n = columns_of(shape, count);
    append(out, static_cast<uint64_t>(n));
    std::vector<ReferenceView::Sums> rows(rows_of(count, n)), columns(n);
    for (int64_t i = 0; i < count; ++i) {
      const double x = as_stored(answer[i], output.stored_as);
      add(rows[i / n], x);
      add(columns[i % n], x);
    }
    if (output.shares_errors)
      for (auto* sums : {&rows, &columns})
        for (ReferenceView::Sums& s : *sums) s.square_sum = s.abs_sum * s.abs_sum;
    for (const auto* sums : {&rows, &columns})
      out.append(reinterpret_cast<const char*>(sums->data()), sums->size() * sizeof(ReferenceView::Sums));
    const std::vector<uint64_t> indices = sampled_indices(shape, count);
    append(out, static_cast<uint64_t>(indices.size()));
    for (uint64_t i : indices)
      append(out, ReferenceView::Sample{i, within_type(answer[i], output.stored_as)});
  }
  append(out, hash_words(out.data(), out.size()));
  return replace_file(path, out);
}

int64_t reference_file_bytes(const std::vector<int64_t>& shape, ReferenceKind kind) {
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  const int64_t head = 24 + 8 * std::ssize(shape) + 8;  // with the hash
  if (kind == ReferenceKind::kFull) return head + 8 * count;
  const int64_t columns = columns_of(shape, count);
  const int64_t sums = (rows_of(count, columns) + columns) * int64_t{sizeof(ReferenceView::Sums)};
  const int64_t samples = std::min(count, kSamples) * int64_t{sizeof(ReferenceView::Sample)};
  return head + 16 + sums + samples;  // with both counts
}

namespace {

template <class... Why>
Status refuse(const Why&... why) {
  return failed("reference file: ", why..., "; let the worker write it again");
}

// Sums and samples, from `payload` on.
Result<ReferenceView> read_checksums(ReferenceView view, std::string_view payload, uint64_t count,
                                     uint64_t columns) {
  const uint64_t words = payload.size() / 8;
  const auto rows =
      static_cast<uint64_t>(rows_of(static_cast<int64_t>(count), static_cast<int64_t>(columns)));
  const uint64_t sums_words = 3 * (rows + columns);
  if (words < sums_words + 1) return refuse("shorter than its shape needs");
  uint64_t samples;
  std::memcpy(&samples, payload.data() + 8 * sums_words, 8);
  if (samples > words || words != sums_words + 1 + 2 * samples)
    return refuse("expected ", samples, " samples in ", words, " words");
  view.rows = {reinterpret_cast<const ReferenceView::Sums*>(payload.data()), rows};
  view.columns = {view.rows.data() + rows, columns};
  view.samples = {reinterpret_cast<const ReferenceView::Sample*>(payload.data() + 8 * (sums_words + 1)),
                  samples};
  for (const ReferenceView::Sample& s : view.samples)
    if (s.index >= count) return refuse("sample outside the answer");
  return view;
}

Status check_frame(std::string_view bytes) {
  if (bytes.size() < 32 || bytes.size() % 8 != 0 || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return refuse("not a reference file (", bytes.size(), " bytes)");
  return Status::ok();
}

}  // namespace

Result<ReferenceView> parse_reference(std::string_view bytes) {
  RETURN_IF_ERROR(check_frame(bytes));
  uint64_t hash;
  std::memcpy(&hash, bytes.data() + bytes.size() - 8, 8);
  if (hash != hash_words(bytes.data(), bytes.size() - 8))
    return refuse("torn or altered: its hash does not fit its bytes");
  return parse_verified_reference(bytes);
}

Result<ReferenceView> parse_verified_reference(std::string_view bytes) {
  RETURN_IF_ERROR(check_frame(bytes));
  size_t at = sizeof kMagic;
  const size_t end = bytes.size() - 8;
  const auto take = [&](void* to, size_t n) {
    if (end - at < n) return false;
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return true;
  };
  uint32_t version = 0, kind = 0;
  uint64_t rank = 0;
  take(&version, 4), take(&kind, 4), take(&rank, 8);
  if (version != kVersion && version != kOwnTolerance)
    return refuse("version ", version, ", this runner reads ", kVersion, " and ", kOwnTolerance);
  if (rank > kMaxRank) return refuse("rank ", rank);
  ReferenceView view;
  view.shape.resize(rank);
  if (!take(view.shape.data(), rank * 8)) return refuse("shorter than its header says");
  if (version == kOwnTolerance) {
    double parts[2];
    if (!take(parts, sizeof parts)) return refuse("shorter than its header says");
    // Also NaN is refused.
    if (!(parts[0] >= 0 && parts[1] >= 0)) return refuse("impossible tolerance");
    view.tolerance = CheckSpec{parts[0], parts[1]};
  }
  // Counts are bounded by the file's size before anything is multiplied further, so nothing overflows.
  uint64_t count = 1;
  for (int64_t d : view.shape) {
    if (d < 1 || static_cast<uint64_t>(d) > (uint64_t{1} << 48) / count) return refuse("impossible shape");
    count *= d;
  }
  view.kind = static_cast<ReferenceKind>(kind);
  if (view.kind == ReferenceKind::kFull) {
    const uint64_t words = (end - at) / 8;
    if (words != count) return refuse("expected ", count, " elements, found ", words);
    view.full = {reinterpret_cast<const double*>(bytes.data() + at), count};
    return view;
  }
  const bool is_old = kind == kChecksumsOfLastDimension;
  if (is_old) view.kind = ReferenceKind::kChecksums;
  if (view.kind != ReferenceKind::kChecksums) return refuse("unknown kind ", kind);
  uint64_t columns = view.shape.empty() ? 1 : view.shape.back();
  if (!is_old && !take(&columns, 8)) return refuse("shorter than its shape needs");
  if (columns < 1 || columns > count) return refuse("impossible number of columns ", columns);
  return read_checksums(std::move(view), bytes.substr(at, end - at), count, columns);
}

namespace {

double bfloat16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

struct Half {
  uint16_t bits;
  operator double() const { return float16_value(bits); }
};
struct Brain {
  uint16_t bits;
  operator double() const { return bfloat16_value(bits); }
};

std::vector<int64_t> place_of(const std::vector<int64_t>& shape, uint64_t index) {
  std::vector<int64_t> place(shape.size());
  for (size_t d = shape.size(); d-- > 0; index /= shape[d])
    place[d] = static_cast<int64_t>(index % static_cast<uint64_t>(shape[d]));
  return place;
}

std::string element_name(std::string_view name, const std::vector<int64_t>& shape, uint64_t index) {
  std::string at;
  for (const int64_t one : place_of(shape, index)) at += str(at.empty() ? "" : ", ", one);
  return str(name, "[", at, "]");
}

// Shortest text that reads back as the same float: what a person compares.
std::string number(double x) {
  if (std::isnan(x)) return "nan";
  char text[32];
  for (int digits = 3; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (static_cast<float>(std::strtod(text, nullptr)) == static_cast<float>(x)) break;
  }
  return text;
}

class Comparer {
 public:
  explicit Comparer(CheckResult& result) : result_(result) {}
  // Describe is called once, for the first wrong value.
  template <class Describe>
  void compare(double found, double expected, double tolerance, const Describe& describe) {
    const double difference = std::fabs(found - expected);
    // Equal values are right whatever the tolerance; infinities of one sign have no difference,
    // and where the reference is no number (a root of what is negative), none is right.
    if (found == expected || (std::isnan(found) && std::isnan(expected))) return;
    // A tolerance of 0 asks for equality. NaN anywhere fails every comparison, so it is not <=.
    double error = tolerance > 0 ? difference / tolerance : std::numeric_limits<double>::infinity();
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    result_.max_error = std::max(result_.max_error, error);
    if (!(error <= 1) && result_.ok) {
      result_.ok = false;
      char t[32];
      std::snprintf(t, sizeof t, "%.3g", tolerance);
      result_.message =
          str(describe(), " is ", number(found), ", reference ", number(expected), ", tolerance ", t);
      result_.found = number(found);
      result_.expected = number(expected);
    }
  }

 private:
  CheckResult& result_;
};

double tolerance_of(const CheckSpec& spec, double x) { return spec.absolute + spec.relative * std::fabs(x); }

size_t elements_of(const ReferenceView& ref) {
  size_t count = 1;
  for (const int64_t d : ref.shape) count *= static_cast<size_t>(d);
  return count;
}

// Which elements are compared; `whole` also compares sums.
struct Part {
  size_t first = 0, count = SIZE_MAX;
  bool whole = true;
};

// Whether no element is further off than `most` tolerances. Without a branch or a division, so that vectors
// do it.
template <class T>
bool none_is_further_off(const double* expected, const T* out, size_t count, const CheckSpec& spec,
                         double most) {
  int64_t further = 0;
  for (size_t i = 0; i < count; ++i) {
    const double difference = std::fabs(static_cast<double>(out[i]) - expected[i]);
    further += difference <= most * tolerance_of(spec, expected[i]) ? 0 : 1;  // NaN is further off
  }
  return further == 0;
}

// Most elements are not as far off as one before them: they say nothing new.
template <class T>
void compare_elements(const ReferenceView& ref, const T* out, const Part& part, const CheckSpec& spec,
                      std::string_view name, CheckResult& result) {
  constexpr size_t kBlock = 64;
  constexpr double kRounding = 1e-12;  // of the product of `most` and a tolerance
  Comparer comparer(result);
  const size_t end = part.first + std::min(part.count, ref.full.size() - part.first);
  for (size_t at = part.first; at < end; at += kBlock) {
    const size_t count = std::min(kBlock, end - at);
    if (none_is_further_off(&ref.full[at], out + at, count, spec, result.max_error * (1 - kRounding)))
      continue;
    for (size_t i = at; i < at + count; ++i)
      comparer.compare(static_cast<double>(out[i]), ref.full[i], tolerance_of(spec, ref.full[i]), [&] {
        result.index = place_of(ref.shape, i);
        return element_name(name, ref.shape, i);
      });
  }
}

template <class T>
OutputSums sums_of(const ReferenceView& ref, const T* out, bool whole) {
  OutputSums sums;
  for (const ReferenceView::Sample& s : ref.samples)
    sums.samples.push_back(static_cast<double>(out[s.index]));
  if (!whole) return sums;
  const size_t n = ref.columns.size(), count = elements_of(ref);
  sums.columns.assign(n, 0);
  for (size_t r = 0; r < ref.rows.size(); ++r) {
    double row = 0;
    for (size_t c = 0, i = r * n; c < n && i < count; ++c, ++i) {
      const auto x = static_cast<double>(out[i]);
      row += x;
      sums.columns[c] += x;
    }
    sums.rows.push_back(row);
  }
  return sums;
}

// Sums are compared if they were taken: a part of an output has samples only.
void compare_sums(const ReferenceView& ref, const OutputSums& found, const CheckSpec& spec,
                  std::string_view name, CheckResult& result) {
  Comparer comparer(result);
  for (size_t i = 0; i < ref.samples.size(); ++i)
    comparer.compare(found.samples[i], ref.samples[i].value, tolerance_of(spec, ref.samples[i].value), [&] {
      result.index = place_of(ref.shape, ref.samples[i].index);
      return element_name(name, ref.shape, ref.samples[i].index);
    });
  const size_t n = ref.columns.size(), count = elements_of(ref);
  const auto sum_tolerance = [&](const ReferenceView::Sums& s, size_t terms) {
    return std::sqrt(static_cast<double>(terms) * spec.absolute * spec.absolute +
                     2 * spec.absolute * spec.relative * s.abs_sum +
                     spec.relative * spec.relative * s.square_sum);
  };
  for (size_t r = 0; r < found.rows.size(); ++r)
    comparer.compare(
        found.rows[r], ref.rows[r].sum, sum_tolerance(ref.rows[r], std::min(n, count - r * n)), [&] {
          return str("sum of row ", r, " of ", name, " (from ", element_name(name, ref.shape, r * n), ")");
        });
  for (size_t c = 0; c < found.columns.size(); ++c)
    comparer.compare(found.columns[c], ref.columns[c].sum, sum_tolerance(ref.columns[c], ref.rows.size()),
                     [&] { return str("sum of column ", c, " of ", name); });
}

template <class T>
void compare_all(const ReferenceView& ref, const T* out, const Part& part, const CheckSpec& spec,
                 std::string_view name, CheckResult& result) {
  if (ref.kind == ReferenceKind::kFull) return compare_elements(ref, out, part, spec, name, result);
  compare_sums(ref, sums_of(ref, out, part.whole), spec, name, result);
}

CheckResult check(const ReferenceView& ref, const void* output, DType dtype, const Part& part,
                  const CheckSpec& spec, std::string_view name) {
  CheckResult result;
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      compare_all(ref, static_cast<const uint8_t*>(output), part, spec, name, result);
      break;
    case DType::kInt8:
      compare_all(ref, static_cast<const int8_t*>(output), part, spec, name, result);
      break;
    case DType::kInt16:
      compare_all(ref, static_cast<const int16_t*>(output), part, spec, name, result);
      break;
    case DType::kUInt16:
      compare_all(ref, static_cast<const uint16_t*>(output), part, spec, name, result);
      break;
    case DType::kInt32:
      compare_all(ref, static_cast<const int32_t*>(output), part, spec, name, result);
      break;
    case DType::kUInt32:
      compare_all(ref, static_cast<const uint32_t*>(output), part, spec, name, result);
      break;
    case DType::kInt64:
      compare_all(ref, static_cast<const int64_t*>(output), part, spec, name, result);
      break;
    case DType::kUInt64:
      compare_all(ref, static_cast<const uint64_t*>(output), part, spec, name, result);
      break;
    case DType::kFloat16:
      compare_all(ref, static_cast<const Half*>(output), part, spec, name, result);
      break;
    case DType::kBFloat16:
      compare_all(ref, static_cast<const Brain*>(output), part, spec, name, result);
      break;
    case DType::kFloat32:
      compare_all(ref, static_cast<const float*>(output), part, spec, name, result);
      break;
    case DType::kFloat64:
      compare_all(ref, static_cast<const double*>(output), part, spec, name, result);
      break;
  }
  return result;
}

}  // namespace

CheckResult check_output(const ReferenceView& ref, const void* output, DType dtype, const CheckSpec& spec,
                         std::string_view name) {
  return check(ref, output, dtype, {}, ref.tolerance.value_or(spec), name);
}

CheckResult check_sums(const ReferenceView& ref, const OutputSums& found, const CheckSpec& spec,
                       std::string_view name) {
  CheckResult result;
  if (found.rows.size() == ref.rows.size() && found.columns.size() == ref.columns.size() &&
      found.samples.size() == ref.samples.size())
    compare_sums(ref, found, ref.tolerance.value_or(spec), name, result);
  else
    result = {.ok = false, .message = str(name, ": sums of another matrix than the reference's")};
  return result;
}

CheckResult check_part(const ReferenceView& ref, const void* output, DType dtype, const CheckSpec& spec,
                       std::string_view name, int64_t most, uint64_t random) {
  Part part{.count = static_cast<size_t>(most), .whole = false};
  if (ref.full.size() > part.count) part.first = random % (ref.full.size() - part.count + 1);
  return check(ref, output, dtype, part, ref.tolerance.value_or(spec), name);
}

}  // namespace tuner
