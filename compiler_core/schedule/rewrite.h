// What the primitives share: finding loops and stages in a Program, and putting a changed subtree back.
// Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler_core/arith/simplify.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/schedule/schedule.h"

namespace tuner::rewrite {

// The statements from the root of a Program down to one of them; empty when there is none.
using Path = std::vector<Stmt>;

template <class Predicate>
bool find_below(const Stmt& s, const Predicate& found, Path& path) {
  if (s == nullptr) return false;
  path.push_back(s);
  if (found(*s)) return true;
  if (find_below(s->body, found, path) || find_below(s->else_body, found, path)) return true;
  for (const Stmt& child : s->stmts)
    if (find_below(child, found, path)) return true;
  path.pop_back();
  return false;
}
// The way to the first statement (in the order they run) that `found` accepts.
template <class Predicate>
Path find_path(const Stmt& root, const Predicate& found) {
  Path path;
  find_below(root, found, path);
  return path;
}

Path find_loop(const Stmt& root, const Var& var);
Path find_statement(const Stmt& root, const StmtNode* statement);
Path prefix(const Path& path, size_t last);  // path[0..last]

// The root with path.back() replaced; null removes it, and every loop, guard and allocation left empty.
Stmt replace_at(const Path& path, Stmt replacement);
// What holds where path.back() stands: loops above it bound, guards above it assumed.
RangeMap ranges_at(const Path& path);

bool stores_to(const Stmt& s, const Buffer& buffer);
bool reads_from(const Stmt& s, const Buffer& buffer);

// The last tensor computed in s: the one whose axis a loop is, as what is computed at an axis stands before
// its consumer.
Buffer owner(const Stmt& s);

// The loop nest whose store computes a buffer: path to that store (of a reduction: the updating one), and
// where on the path the part begins that computes nothing else.
struct Stage {
  Path path;
  size_t own = 0;
  const StmtNode& store() const { return *path.back(); }
  std::vector<Stmt> loops() const;  // own ones, outermost first
};
std::optional<Stage> find_stage(const Stmt& root, const Buffer& buffer);

// A stage whose spatial loops still run over the dimensions of its buffer, one each: it can be moved, cached
// or inlined.
struct PlainStage {
  Stage stage;
  size_t top = 0;           // on the path: the outermost own loop or the store
  std::vector<Stmt> loops;  // outermost first
  std::vector<std::optional<Var>>
      dims;  // the loop variable of each dimension; none where the index is 0 (extent 1)
};
// The error says what was done to it that cannot be undone.
Result<PlainStage> plain_stage(const Stmt& root, const Buffer& buffer);

// Around `body`: guards, each just inside the innermost loop it needs, and loops, outermost first.
Stmt nest(const std::vector<Stmt>& loops, const std::vector<Expr>& guards, Stmt body);

// Puts an allocation of `buffer` around the whole root.
Stmt allocate_at_root(const Stmt& root, const Buffer& buffer);
// Takes the allocation of `buffer` away.
Stmt drop_allocation(const Stmt& root, const Buffer& buffer);

// Refuses when a buffer would be used where it is not allocated (a statement left the block of what it
// reads).
Status check_allocated(const Program& program, const Stmt& root);

// A buffer like `like`, with another name, shape and scope, not an argument.
Buffer derived_buffer(const Buffer& like, std::string name, std::vector<int64_t> shape, MemoryScope scope);

// What a primitive may make larger, and how far.
//
// Iterations of one nest of loops. Index arithmetic is exact up to here (arith/simplify.cpp).
constexpr int64_t kMostIterations = int64_t{1} << 60;
// Bytes of one buffer: what a process can address.
constexpr int64_t kMostBytes = int64_t{1} << 47;
// Bytes of padding in one buffer that holds less than that: beyond it a schedule is a mistake, and blocks of
// blocks get there quickly.
constexpr int64_t kMostPaddingBytes = int64_t{1} << 30;

inline int64_t blocks_of(int64_t extent, int64_t factor) {  // the last one may be cut
  return extent / factor + (extent % factor != 0 ? 1 : 0);
}
// a * b for a, b >= 0, and what is greater than kMostIterations as one more than that.
int64_t bounded_product(int64_t a, int64_t b);
// Iterations of the longest nest at and below `s`; bounded likewise.
int64_t nest_iterations(const Stmt& s);
// Of the loops above path.back(); bounded likewise.
int64_t iterations_around(const Path& path);
// Of a buffer; the largest int64 when there are more.
int64_t exact_bytes(const Buffer& buffer);
// Refuses a buffer of more than kMostBytes.
Status check_size(const Buffer& buffer);
// True when `padded` has more padding than kMostPaddingBytes and than `buffer` has bytes.
bool mostly_padding(const Buffer& padded, const Buffer& buffer);

// `wanted`, or wanted.2, wanted.3... when a buffer of that name exists.
std::string free_name(const Program& program, const std::string& wanted);

// The name of a loop in traces and messages: its variable's when only one loop has it, else "tensor:name"
// where tensor is the last one computed in that loop.
std::string label(const Stmt& root, const Var& var);
std::string labels(const Stmt& root, std::span<const Axis> axes);
// The loop that label() names so; null when there is none.
Var loop_by_label(const Stmt& root, std::string_view label);

}  // namespace tuner::rewrite

namespace tuner {

template <class F>
void Schedule::apply(const std::string& call, const F& rewrite) {
  if (refused()) return;
  Status status = rewrite();
  if (!status.is_ok()) status_ = status.with_context(call + ": ");
}

}  // namespace tuner
