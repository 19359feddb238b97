// Residuals: partially evaluated constraints over knobs, in a normal form. Constraints that say the same
// about the remaining knobs get the same id as often as possible, which keeps a decision diagram small.
//
//   an expression over one knob        a table: its value for each candidate
//   sums and products                  flat, sorted, constants and coefficients pulled out, terms of one knob
//                                      added up
//   comparisons                        f <= t, f >= t, f == t, f != t, with t moved to a value that f can
//                                      take
//   (c * f + d) % m                    c and d reduced modulo m
//
// tile_m * tile_n <= 24, where tile_m (layer 0) is 1, 2 or 4, and tile_n (layer 1) is 2, 4 or 8:
//
//   imported           kLe 8              tile_n = 2 * {1, 2, 4}, so 12 is the bound of what is left; that product
//                        |                takes 1, 2, 4, 8 and 16, so 8 is the bound that it can reach
//                    kProduct 1
//                .-------+-------.
//       kTable, layer 0    kTable, layer 1        each node has an id; operands are ids
//          {1, 2, 4}          {1, 2, 4}
//
//   tile_m = 4      kTable, layer 1  {1, 1, 0}    one knob is left: which of its candidates may be taken
//   tile_m = 2      kConst 1                      the knobs that are left are free
//
// tile_m * tile_n < 25 is imported with the same id, and tile_m = 1 gives the same id as tile_m = 2. In the
// diagram the prefixes tile_m = 1 and tile_m = 2 are therefore one node.
//
// Knobs are numbered by layer, the order in which they will be decided; substitute() decides the first layer
// that an expression reads. Arithmetic that could exceed 62 bits is kept as written, so that it saturates as
// knob.h promises.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "templates/space/int_expr.h"
#include "templates/space/knob.h"

namespace tuner {

// An expression in normal form. Two of one Residuals that are equal are the same expression.
enum class ResidualId : int32_t { kNone = -1 };

class Residuals {
 public:
  // kAdd, kSub and kMul are kept as written, where a flat sum or product might saturate differently.
  enum class Kind : uint8_t {
    kConst,
    kTable,
    kSum,
    kProduct,
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMod,
    kPow,
    kMin,
    kMax,  // numbers
    kLe,
    kGe,
    kEq,
    kNe,
    kAnd,
    kOr,  // truths
  };

  // `candidates`: those of each layer's knob.
  explicit Residuals(std::vector<const std::vector<int64_t>*> candidates)
      : candidates_(std::move(candidates)) {}

  // Imports `e` as a truth value: 1 where e is not 0, else 0. `layer_of` is indexed by knob position.
  ResidualId import_constraint(const IntExprNode& e, const std::vector<int>& layer_of) {
    return truth(import(e, layer_of));
  }
  // Returns `e` with the knob of first_layer(e) set to its candidate number `choice`.
  ResidualId substitute(ResidualId e, int choice);

  bool is_constant(ResidualId e) const { return node(e).kind == Kind::kConst; }
  int64_t constant_value(ResidualId e) const { return node(e).value; }
  // True if `e` reads a single knob; table() then has its value for each choice.
  bool is_table(ResidualId e) const { return node(e).kind == Kind::kTable; }
  const int64_t* table(ResidualId e) const { return words_.data() + node(e).first; }
  int first_layer(ResidualId e) const { return node(e).first_layer; }  // INT_MAX for a constant
  bool is_conjunction(ResidualId e) const { return node(e).kind == Kind::kAnd; }
  std::vector<ResidualId> operands(ResidualId e) const;
  size_t nodes() const { return nodes_.size(); }

 private:
  struct Node {
    Kind kind;
    int64_t value =
        0;  // constant; addend of a sum; coefficient of a product; t of a comparison; gcd of a table
    int64_t first = 0;  // where its operands (ids) or its table (values) begin in words_
    int32_t count = 0;  // how many of them
    int32_t first_layer = INT32_MAX;
    uint64_t layers = 0;  // bit i: reads the knob of layer i
    IntRange range{0, 0};
    int64_t substituted = -1;  // where its results begin in substituted_; -1: not computed yet
    int32_t values = -1;       // position in value_sets_; -1: not computed yet, -2: too many
    ResidualId bare =
        ResidualId::kNone;  // a sum without addend, a product with coefficient 1; kNone: not computed yet
  };

  ResidualId import(const IntExprNode& e, const std::vector<int>& layer_of);
  ResidualId constant(int64_t v);
  ResidualId table_node(int layer, const std::vector<int64_t>& values);
  ResidualId sum(const std::vector<ResidualId>& terms, int64_t addend);
  ResidualId product(const std::vector<ResidualId>& factors, int64_t coefficient);
  ResidualId scaled(ResidualId e, int64_t coefficient);
  ResidualId bare(ResidualId e);
  ResidualId binary(IntOp op, ResidualId a, ResidualId b);
  ResidualId modulo(ResidualId a, ResidualId b);
  ResidualId compare(Kind kind, ResidualId a, ResidualId b);
  ResidualId compare_with(Kind kind, ResidualId f, int64_t t);
  ResidualId connect(Kind kind, const std::vector<ResidualId>& parts);
  ResidualId truth(ResidualId e);
  ResidualId negated(ResidualId e);

  // If `operands` (constants aside) read one common layer, returns the operation as a table; kNone if they
  // read several.
  template <class F>
  ResidualId tabulate(std::initializer_list<ResidualId> operands, F value_of);
  int64_t at(ResidualId e, int choice) const {
    return node(e).kind == Kind::kConst ? node(e).value : words_[node(e).first + choice];
  }
  // New nodes move those that are there: a reference lasts until the next one is made.
  Node& node(ResidualId e) { return nodes_[static_cast<size_t>(e)]; }
  const Node& node(ResidualId e) const { return nodes_[static_cast<size_t>(e)]; }
  static std::vector<int64_t> words_of(const std::vector<ResidualId>& ids);
  ResidualId intern(Node made, const std::vector<int64_t>& words);
  // Returns the values that `e` may take, ascending, possibly more; nullptr: too many to list.
  const std::vector<int64_t>* values_of(ResidualId e);
  void sort_by_knob(std::vector<ResidualId>& ids) const;

  std::vector<const std::vector<int64_t>*> candidates_;
  std::vector<Node> nodes_;
  std::vector<int64_t> words_;
  std::vector<ResidualId> substituted_;
  std::vector<std::vector<int64_t>> value_sets_;
  std::unordered_multimap<uint64_t, ResidualId> ids_;
};

// Hashes n words, for tables of interned nodes.
uint64_t hash_words(const int64_t* words, size_t n);

}  // namespace tuner
