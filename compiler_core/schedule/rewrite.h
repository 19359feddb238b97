// Helpers of the primitives: they find loops and stages in a Program, and put a changed subtree back.
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

// The statements from the root of a Program down to one of them; empty if there is none.
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
// Returns the path to the first statement, in the order they run, that `found` accepts.
template <class Predicate>
Path find_path(const Stmt& root, const Predicate& found) {
  Path path;
  find_below(root, found, path);
  return path;
}

// Return the path to a loop, or to a statement; empty if it is not below `root`.
Path find_loop(const Stmt& root, const Var& var);
Path find_statement(const Stmt& root, const StmtNode* statement);
Path prefix(const Path& path, size_t last);  // path[0..last]

// Returns the root with path.back() replaced. Null removes it, with every loop, guard and allocation left
// empty.
Stmt replace_at(const Path& path, Stmt replacement);
// Returns what holds at path.back(): ranges of the loops above it, and the guards above it.
RangeMap ranges_at(const Path& path);

// True if a statement at or below `s` stores to (loads from) the buffer.
bool stores_to(const Stmt& s, const Buffer& buffer);
bool reads_from(const Stmt& s, const Buffer& buffer);

// Refuses a loop of steps: it stays as it is, whatever becomes of the loops inside.
Status check_no_step(const Stmt& loop);

// Refuses a buffer that is not in shared memory.
Status check_shared(const Buffer& buffer);
// Refuses if a tile intrinsic has a tile of the buffer: its elements must stay where they are.
Status check_no_tiles(const Stmt& root, const Buffer& buffer);

// Returns the last tensor computed in s. It owns the loop, because what is computed at an axis comes before
// its consumer.
Buffer owner(const Stmt& s);

// The loop nest whose store computes a buffer. `path` leads to that store (for a reduction: the updating
// one); from path[own] on, the nest computes nothing else.
struct Stage {
  Path path;
  size_t own = 0;
  const StmtNode& store() const { return *path.back(); }
  std::vector<Stmt> loops() const;  // its own loops, outermost first
};
std::optional<Stage> find_stage(const Stmt& root, const Buffer& buffer);

// A stage whose spatial loops still run over the dimensions of its buffer, one loop each. It can be moved,
// cached or inlined.
struct PlainStage {
  Stage stage;
  size_t top = 0;           // position on the path: the outermost own loop, or the store
  std::vector<Stmt> loops;  // outermost first
  // The loop variable of each dimension; none if the index is 0 (extent 1).
  std::vector<std::optional<Var>> dims;
};
// The error says what was done to the stage that prevents this.
Result<PlainStage> plain_stage(const Stmt& root, const Buffer& buffer);
// Refuses a stage that hands something from one step to the next: one that reads what its step stores only
// later, or whose buffer is read before it is stored. Such a stage stays where it is.
Status check_not_carried(const Stage& stage);

// Wraps `body` in loops, outermost first, and in guards, each just inside the innermost loop it needs.
Stmt nest(const std::vector<Stmt>& loops, const std::vector<Expr>& guards, Stmt body);

// Reads of `from`, and tiles of it that intrinsics write, become those of `to` at one more, leading index.
Stmt with_leading_index(const Stmt& s, const Buffer& from, const Buffer& to, const Expr& leading);

// Puts an allocation of `buffer` around the whole root.
Stmt allocate_at_root(const Stmt& root, const Buffer& buffer);
// Removes the allocation of `buffer`.
Stmt drop_allocation(const Stmt& root, const Buffer& buffer);

// Refuses if a buffer would be used where it is not allocated (a statement left the block of what it reads).
Status check_allocated(const Program& program, const Stmt& root);

// Makes a buffer like `like` with another name, shape and scope; it is not an argument.
Buffer derived_buffer(const Buffer& like, std::string name, std::vector<int64_t> shape, MemoryScope scope);

// Limits on what a primitive may make larger.
//
// Iterations of one nest of loops. Index arithmetic is exact up to here (arith/simplify.cpp).
constexpr int64_t kMostIterations = int64_t{1} << 60;
// Bytes of one buffer: what a process can address.
constexpr int64_t kMostBytes = int64_t{1} << 47;
// Bytes of padding in one buffer, if its content is smaller than that. A schedule beyond it is a mistake;
// blocks of blocks get there quickly.
constexpr int64_t kMostPaddingBytes = int64_t{1} << 30;

inline int64_t blocks_of(int64_t extent, int64_t factor) {  // the last one may be cut
  return extent / factor + (extent % factor != 0 ? 1 : 0);
}
// Returns a * b for a, b >= 0; anything above kMostIterations becomes kMostIterations + 1.
int64_t bounded_product(int64_t a, int64_t b);
// Returns the iterations of the longest nest at and below `s`, bounded likewise.
int64_t nest_iterations(const Stmt& s);
// Returns the iterations of the loops above path.back(), bounded likewise.
int64_t iterations_around(const Path& path);
// Returns the bytes of a buffer; the largest int64 if there are more.
int64_t exact_bytes(const Buffer& buffer);
// Refuses a buffer of more than kMostBytes.
Status check_size(const Buffer& buffer);
// True if `padded` has more padding than kMostPaddingBytes and more than `buffer` has bytes.
bool mostly_padding(const Buffer& padded, const Buffer& buffer);

// Returns `wanted`, or wanted.2, wanted.3... if a buffer of that name exists.
std::string free_name(const Program& program, const std::string& wanted);

// Returns a loop's name in traces and messages: its variable's name if only one loop has it, else
// "tensor:name", where tensor is the last one computed in that loop.
std::string label(const Stmt& root, const Var& var);
std::string labels(const Stmt& root, std::span<const Axis> axes);
// Returns the loop with this label(); null if there is none.
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
