// The walk from a scheduled Program to instructions. Private to this folder; a file per subject.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler_core/codegen_npu/linear.h"
#include "compiler_core/codegen_npu/lower_npu.h"
#include "compiler_core/codegen_npu/nest.h"
#include "compiler_core/codegen_npu/out_stage.h"
#include "compiler_core/codegen_npu/sums.h"
#include "compiler_core/npu/allocate.h"
#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/plan.h"

namespace tuner {

// A buffer in the scratchpad: words as allocate_scratchpad() wants them, and what stands between two rows.
struct SharedPlace {
  uint32_t begin = 0;
  int64_t pitch = 0;  // bytes from one row, the last dimension, to the next
  // What the vector unit makes has places that take turns: one is stored while the next one is filled.
  int64_t words = 0, places = 1;
  int64_t turn = 0;      // from 0; it has place turn % places
  bool is_read = false;  // what this turn has made is read already
};

class NpuLowering {
 public:
  // `places`: of each buffer that the vector unit makes.
  NpuLowering(const Program& program, const npu::Machine& machine, int64_t places)
      : program_(program), m_(machine), places_(places) {}
  Result<NpuProgram> run();
  // Whether run() gave a buffer several places.
  bool takes_turns() const { return !turning_.empty(); }

 private:
  struct SumRows {
    FragmentSums* sums;
    Linear row;
    int64_t block;
  };
  // A rectangle: rows of bytes side by side in both memories, some of them zeros.
  struct Rectangle {
    int64_t dram = 0, word = 0;  // of the first byte that is there, of the first row with its padding
    int64_t dram_stride = 0, stride = 0;  // from row to row; of the scratchpad in words
    int64_t rows = 1, bytes = 1;          // that are there
    int64_t left = 0, right = 0, top = 0, bottom = 0;
    int64_t fill = 0;  // what stands around them
  };
  // Bias and scale of all channels, as `store_scales` wants them: of each block of columns first all biases,
  // then all scales.
  struct Table {
    const BufferNode *bias, *scale;
    uint32_t begin;
    int64_t channels;
  };
  struct Weights {
    int64_t word = -1, stride = 0;
    size_t loaded = 0;
    bool operator==(const Weights&) const = default;
  };
  // What the latest store_scales has taken.
  struct Scales {
    int64_t word = 0, blocks = 0;
    const BufferNode* zero_point = nullptr;
    std::optional<double> least, most;
    bool operator==(const Scales&) const = default;
  };

  // --- memories: lower_memories.cpp ---
  Status place_arguments();
  Status place_buffers();
  // `staged`: it is loaded ahead. `made`: the vector unit makes it.
  Status place_shared(const BufferNode& b, bool staged, bool made);
  Status new_buffer(int64_t words);
  // The next instruction writes to it: a new turn, if what the latest turn has made is read.
  void begin_turn(const BufferNode* buffer);
  // Refuses an instruction that reads what was made in a turn before.
  Status follow_turns(const npu::Instruction& i);
  Status add_fragment(const BufferNode& b);
  Status place_fragments();
  // The place of an element in bytes, counted from the first word; of an argument in DRAM.
  Result<Linear> byte_of(const Buffer& buffer, const std::vector<Expr>& indices) const;

  // --- the walk: lower_npu.cpp ---
  Status emit(const npu::Instruction& i);
  Status set_strides(npu::Op op, int64_t dram, int64_t words);
  void note(const Nest& nest);
  Status walk(const Stmt& s);
  const Nest& nest_of(const Stmt& s);
  // False: it is more than one instruction's, and a loop less may be one's.
  Result<bool> instruction(const Nest& nest);
  Status check_array(std::string_view intrinsic) const;
  Result<NpuProgram> finish();

  // --- products: lower_products.cpp ---
  // True if the loops of the instruction move its sums from row to row alone.
  bool stays_in_block(const Expr& sums) const;
  Result<SumRows> sums_of(const Expr& operand);
  Status zero(const StmtNode& leaf);
  // Whether a product adds to these rows or begins them. They hold sums afterwards.
  Result<bool> begin_sums(FragmentSums& sums, int64_t row, int64_t count, int64_t block);
  Result<int64_t> words_of(int64_t bytes, const Expr& operand) const;
  Result<bool> rows_product(const Nest& nest);
  // The weights of the next product. Unless they are there, they are filled beside the rows of the product
  // before, if they had been loaded then.
  Status take_weights(const Expr& operand, int64_t word, int64_t stride);
  Result<bool> terms_product(const Nest& nest);
  // One loop over results, and up to two over taps, in any order.
  Result<bool> channels_product(const Nest& nest);

  // --- loads: lower_loads.cpp ---
  // One number behind the latest instruction that loaded into the buffer of this word; 0: none.
  size_t loaded_at(uint32_t word) const;
  size_t buffer_at(uint32_t word) const;
  Status load(const StmtNode& leaf);
  // Loops of one iteration are none. Two loops over elements at equal distances in every memory are one: the
  // inner one is run through, and the outer one goes on where it ends.
  static void merge_loops(std::vector<InstructionLoop>& whole, std::vector<InstructionLoop>& there,
                          std::initializer_list<Linear*> places);
  // Chooses the loop along rows and the one from row to row; the others run here.
  Status load_box(const StmtNode& leaf, Linear to, Linear from, std::vector<InstructionLoop> whole,
                  std::vector<InstructionLoop> there, int64_t fill, bool nothing_there);
  Result<int64_t> aligned(int64_t bytes, const StmtNode& leaf) const;
  Status load_rectangle(Rectangle r);
  // Rows that are longer than a load takes.
  Status load_in_parts(const Rectangle& r);
  // Rows of padding and nothing else: they come from DRAM, too.
  Status load_fill(int64_t word, int64_t stride, int64_t rows, int64_t bytes, int64_t fill);
  // Where so many bytes of this number stand in DRAM.
  Result<int64_t> filled_dram(int64_t fill, int64_t bytes);

  // --- the vector unit: lower_vector.cpp ---
  // kLess: a loop less may be one's.
  enum class Vectored : uint8_t { kNo, kLess, kDone };
  Result<Vectored> vector_store(const Nest& nest);
  Result<bool> quantized_sum(const Nest& nest, const QuantizedSum& sum);
  Status set_registers(const QuantizedSum& sum, DType dtype);
  // A maximum begins with the least number, as `pool` does, and is one instruction's.
  Status begin_maxima(const StmtNode& leaf);
  Result<bool> maxima(const Nest& nest);
  bool is_shared(const Expr& e) const;
  // Words of the scratchpad that the loops of the instruction reach from here.
  std::pair<int64_t, int64_t> words_in(const Linear& bytes) const;

  // --- whole rows: lower_rows.cpp ---
  // What a register of the Program holds of each row.
  struct RowValue {
    enum class Kind : uint8_t { kNone, kMost, kTotal, kSum, kSquares };
    Kind kind = Kind::kNone;
    Expr x, most;  // loads
    Buffer table;
  };
  struct RowResult {
    Expr x;                      // a load
    Buffer table, gain, offset;  // table: softmax; the others: norm
    float scale = 0;             // norm: epsilon
    int64_t zero = 0, columns = 0;
  };
  Status row_value(const StmtNode& leaf);
  std::optional<RowResult> match_rows(const StmtNode& leaf) const;
  Result<bool> rows_result(const Nest& nest, const RowResult& row);
  Status load_row_tables();

  // --- stores: lower_stores.cpp ---
  // What the vector unit has made.
  Status store_words(const StmtNode& leaf);
  int64_t block_words() const;
  Status load_tables();
  Status load_table(const RequantisedSum& out);
  const Table* find_table(const RequantisedSum& out) const;
  Status store(const StmtNode& leaf);
  // As sums_of(), of a column that moves.
  Result<SumRows> row_of_sums(const Expr& operand);
  Status store_rectangle(const RequantisedSum& out, FragmentSums& sums, int64_t dram, int64_t dram_stride,
                         int64_t row, int64_t rows, int64_t block, int64_t scale_block, int64_t bytes);
  Status take_scales(const RequantisedSum& out, int64_t block, int64_t blocks);
  std::optional<uint32_t> operand_number(const Buffer& buffer) const;

  const Program& program_;
  const npu::Machine m_;
  const int64_t places_;
  LinearScope scope_;
  std::vector<std::pair<const VarNode*, int64_t>> around_;  // loops that run here
  std::unordered_map<const StmtNode*, Nest> nests_;
  std::map<const BufferNode*, uint64_t> places_in_dram_;
  std::map<const BufferNode*, SharedPlace> shared_;
  std::map<const BufferNode*, FragmentSums> fragments_;
  std::vector<const BufferNode*> fragment_order_;  // that of the Program, which is the same in every process
  std::vector<npu::ScratchpadBuffer> buffers_;
  std::map<size_t, const BufferNode*> turning_;         // by buffer: what takes turns with it
  std::unordered_map<uint32_t, int64_t> turn_of_word_;  // that wrote it last
  npu::Plan plan_;                                      // of the latest instruction
  std::map<size_t, size_t> loads_;  // by buffer: one number behind the latest load into it
  std::vector<Table> tables_;
  uint32_t next_word_ = 0;
  uint64_t zeros_at_ = 0;
  npu::Code code_;
  npu::KernelFile kernel_;
  std::vector<std::pair<uint32_t, std::string>> notes_;
  std::optional<std::pair<int64_t, int64_t>> load_strides_, store_strides_;
  std::optional<Scales> scales_;
  std::optional<npu::Instruction> vector_registers_;
  std::map<const BufferNode*, RowValue> row_values_;
  std::map<const BufferNode*, uint32_t> row_tables_;  // words; null: gains and offsets
  std::vector<const BufferNode*> norm_tables_;
  std::set<int64_t> begun_;  // words that hold the beginning of a maximum
  std::optional<Weights> weights_;
  std::optional<size_t> latest_matmul_;
  bool must_swap_ = false;
};

}  // namespace tuner
