// Residuals: partially evaluated constraints over knobs, in a normal form. Constraints that say the same
// about the remaining knobs get the same id as often as possible, which keeps a decision diagram small.
//
//   an expression over one knob        a table: its value for each candidate
//   sums and products                  flat, sorted, constants and coefficients pulled out, terms of one knob added up
//   comparisons                        f <= t, f >= t, f == t, f != t, with t moved to a value that f can take
//   (c * f + d) % m                    c and d reduced modulo m
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
  int import_constraint(const IntExprNode& e, const std::vector<int>& layer_of) {
    return truth(import(e, layer_of));
  }
  // Returns `e` with the knob of first_layer(e) set to its candidate number `choice`.
  int substitute(int e, int choice);

  bool is_constant(int e) const { return nodes_[e].kind == Kind::kConst; }
  int64_t constant_value(int e) const { return nodes_[e].value; }
  // True if `e` reads a single knob; table() then has its value for each choice.
  bool is_table(int e) const { return nodes_[e].kind == Kind::kTable; }
  const int64_t* table(int e) const { return words_.data() + nodes_[e].first; }
  int first_layer(int e) const { return nodes_[e].first_layer; }  // INT_MAX for a constant
  bool is_conjunction(int e) const { return nodes_[e].kind == Kind::kAnd; }
  std::vector<int> operands(int e) const;
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
    int32_t bare = -1;         // a sum without addend, a product with coefficient 1; -1: not computed yet
  };

  int import(const IntExprNode& e, const std::vector<int>& layer_of);
  int constant(int64_t v);
  int table_node(int layer, const std::vector<int64_t>& values);
  int sum(const std::vector<int>& terms, int64_t addend);
  int product(const std::vector<int>& factors, int64_t coefficient);
  int scaled(int e, int64_t coefficient);
  int bare(int e);
  int binary(IntOp op, int a, int b);
  int modulo(int a, int b);
  int compare(Kind kind, int a, int b);
  int compare_with(Kind kind, int f, int64_t t);
  int connect(Kind kind, const std::vector<int>& parts);
  int truth(int e);
  int negated(int e);

  // If `operands` (constants aside) read one common layer, returns the operation as a table; -1 if they read
  // several.
  template <class F>
  int tabulate(std::initializer_list<int> operands, F value_of);
  int64_t at(int e, int choice) const {
    return nodes_[e].kind == Kind::kConst ? nodes_[e].value : words_[nodes_[e].first + choice];
  }
  int intern(Node node, const std::vector<int64_t>& words);
  // Returns the values that `e` may take, ascending, possibly more; nullptr: too many to list.
  const std::vector<int64_t>* values_of(int e);
  void sort_by_knob(std::vector<int>& nodes) const;

  std::vector<const std::vector<int64_t>*> candidates_;
  std::vector<Node> nodes_;
  std::vector<int64_t> words_;
  std::vector<int32_t> substituted_;
  std::vector<std::vector<int64_t>> value_sets_;
  std::unordered_multimap<uint64_t, int> ids_;
};

// Hashes n words, for tables of interned nodes.
uint64_t hash_words(const int64_t* words, size_t n);

}  // namespace tuner
