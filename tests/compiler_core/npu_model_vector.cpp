// What the second model does in the vector unit, and with scales.
#include <cmath>
#include <cstring>

#include "tests/compiler_core/npu_model_maker.h"

namespace tuner::npu::testing {

void ModelJobMaker::scales(ModelState::Scales& to) {
  const int64_t block_words = words(8 * m.array_columns);
  for (int64_t k = 0; k < i.blocks * block_words; ++k) reads(step(), i.source + k);
  // At the last word all has arrived.
  job.streams[0].back().effect = [=, at_end = ModelContext(*this), &to] {
    to.registers = at_end.i;
    to.bias.assign(at_end.i.blocks * at_end.m.array_columns, 0);
    to.scale.assign(to.bias.size(), 0);
    for (int64_t n = 0; n < static_cast<int64_t>(to.bias.size()); ++n) {
      const int64_t block = n / at_end.m.array_columns, c = n % at_end.m.array_columns;
      uint32_t numbers[2] = {0, 0};
      for (int half = 0; half < 2; ++half)
        for (int64_t b = 0; b < 4; ++b) {
          const int64_t at = half * 4 * at_end.m.array_columns + 4 * c + b;
          const int8_t part = at_end.byte(at_end.i.source + block * block_words + at / at_end.m.bank_bytes,
                                          at % at_end.m.bank_bytes);
          numbers[half] |= uint32_t{static_cast<uint8_t>(part)} << (8 * b);
        }
      to.bias[n] = static_cast<int32_t>(numbers[0]);
      std::memcpy(&to.scale[n], &numbers[1], 4);
    }
  };
}

void ModelJobMaker::drain() {
  const int64_t width = words(m.array_columns);
  for (int64_t r = 0; r < i.rows; ++r)
    for (int64_t j = 0; j < i.blocks; ++j) {
      const int64_t target = i.target + r * i.stride + j * width, row = i.sums + j * i.outer_stride + r;
      touches_sum(row, false);
      ModelStep& out = step();
      for (int64_t k = 0; k < width; ++k) writes(out, target + k);
      out.effect = [=, at_end = ModelContext(*this)] {
        const ModelState::Scales& scales = at_end.s.drain_scales;
        for (int64_t b = 0; b < width * at_end.m.bank_bytes; ++b) {
          int8_t& to = at_end.byte(target + b / at_end.m.bank_bytes, b % at_end.m.bank_bytes);
          to = 0;
          if (b >= at_end.m.array_columns) continue;
          const int64_t channel = j * at_end.m.array_columns + b;
          const int32_t biased = wrapped(int64_t{at_end.sum(row, b)} + scales.bias[channel]);
          to = rounded(static_cast<float>(biased) * scales.scale[channel], scales.registers);
        }
      };
      more_steps(m.array_columns);
    }
}

void ModelJobMaker::add() {
  for (int64_t k = 0; k < i.rows; ++k) {
    ModelStep& sum_step = step();
    reads(sum_step, i.source + k);
    reads(sum_step, i.source2 + k);
    writes(sum_step, i.target + k);
    sum_step.effect = [=, at_end = ModelContext(*this)] {
      const Instruction& v = at_end.s.vector_registers;
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b) {
        const float x = static_cast<float>(at_end.registered(at_end.i.source + k, b) - v.zero_a) * v.scale_a;
        const float y = static_cast<float>(at_end.registered(at_end.i.source2 + k, b) - v.zero_b) * v.scale_b;
        at_end.byte(at_end.i.target + k, b) = rounded(x + y, v);
      }
    };
    more_steps(m.bank_bytes);
  }
}

// pool and macc: results of windows of taps.
void ModelJobMaker::windows() {
  const bool sums = i.op == Op::kMacc;
  const int64_t width = sums ? words(m.array_columns) : 1;
  const int64_t values = sums ? m.array_columns : m.bank_bytes;
  const int64_t taps = int64_t{i.taps_x} * i.taps_y;
  for (int64_t p = 0; p < i.rows; ++p) {
    const auto most = std::make_shared<std::vector<int64_t>>(m.bank_bytes, -128);
    if (sums) touches_sum(i.sums + p, true);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t source = i.source + p * i.stride + tap / i.taps_x * i.step_y + tap % i.taps_x * i.step_x;
      const int64_t weights = i.source2 + tap * width, target = i.target + p * i.stride2;
      ModelStep& one = step();
      for (int64_t k = 0; k < width; ++k) reads(one, source + k);
      for (int64_t k = 0; k < width && sums; ++k) reads(one, weights + k);
      if (!sums && tap == taps - 1) writes(one, target);
      one.effect = [=, at_end = ModelContext(*this)] {
        for (int64_t c = 0; c < values; ++c) {
          if (!sums) {
            (*most)[c] = std::max((*most)[c], at_end.operand(source, c));
            continue;
          }
          int32_t& to = at_end.sum(at_end.i.sums + p, c);
          if (tap == 0 && !at_end.i.accumulate) to = 0;
          to = wrapped(int64_t{to} + at_end.operand(source, c) * at_end.byte(weights, c));
        }
        for (int64_t c = 0; c < values && !sums && tap == taps - 1; ++c)
          at_end.byte(target, c) = static_cast<int8_t>((*most)[c]);
      };
      more_steps(values);
    }
  }
}

void ModelJobMaker::table() {
  const auto held = std::make_shared<std::vector<int8_t>>();
  for (int64_t k = 0; k < words(256); ++k) {
    ModelStep& entry = step();
    reads(entry, i.source2 + k);
    entry.effect = [=, at_end = ModelContext(*this)] {
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b) held->push_back(at_end.byte(at_end.i.source2 + k, b));
    };
  }
  for (int64_t k = 0; k < i.rows; ++k) {
    ModelStep& look_up = step();
    reads(look_up, i.source + k);
    writes(look_up, i.target + k);
    look_up.effect = [=, at_end = ModelContext(*this)] {
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b)
        at_end.byte(at_end.i.target + k, b) = held->at(at_end.byte(at_end.i.source + k, b) & 0xff);
    };
    more_steps(m.bank_bytes);
  }
}

void ModelJobMaker::softmax() {
  struct Row {
    int most = -128;  // below all of uint8, too
    int64_t total = 0;
  };
  const auto held = std::make_shared<std::vector<uint8_t>>();
  for (int64_t k = 0; k < words(1024); ++k) {
    ModelStep& entry = step();
    reads(entry, i.source2 + k);
    entry.effect = [=, at_end = ModelContext(*this)] {
      for (int64_t b = 0; b < at_end.m.bank_bytes; ++b)
        held->push_back(static_cast<uint8_t>(at_end.byte(at_end.i.source2 + k, b)));
    };
  }
  const auto entry = [held](int difference) {
    int32_t value;
    std::memcpy(&value, &held->at(4 * (difference & 0xff)), 4);
    return value;
  };
  for (int64_t r = 0; r < i.rows; ++r) {
    const auto row = std::make_shared<Row>();
    for (int64_t pass = 0; pass < 3; ++pass)
      for (int64_t k = 0; k < words(i.bytes); ++k) {
        const int64_t source = i.source + r * i.stride + k, target = i.target + r * i.stride + k;
        ModelStep& one = step();
        reads(one, source);
        if (pass == 2) writes(one, target);
        one.effect = [=, at_end = ModelContext(*this)] {
          const Instruction& v = at_end.s.vector_registers;
          for (int64_t b = 0; b < at_end.m.bank_bytes; ++b) {
            const bool inside = k * at_end.m.bank_bytes + b < at_end.i.bytes;
            const auto value = static_cast<int>(at_end.registered(source, b));
            if (pass == 0 && inside) row->most = std::max(row->most, value);
            if (pass == 1 && inside) row->total += entry(row->most - value);
            if (pass < 2) continue;
            const float factor = v.scale_a / static_cast<float>(row->total);
            const float share = static_cast<float>(entry(row->most - value)) * factor;
            at_end.byte(target, b) = inside ? rounded(share, v) : int8_t{0};
          }
        };
        more_steps(m.bank_bytes);
      }
  }
}

void ModelJobMaker::norm() {
  struct Row {
    int64_t sum = 0, squares = 0;
  };
  for (int64_t r = 0; r < i.rows; ++r) {
    const auto row = std::make_shared<Row>();
    const int64_t source = i.source + r * i.stride, target = i.target + r * i.stride;
    for (int64_t k = 0; k < words(i.bytes); ++k) {
      ModelStep& one = step();
      reads(one, source + k);
      one.effect = [=, at_end = ModelContext(*this)] {
        for (int64_t b = 0; b < at_end.m.bank_bytes && k * at_end.m.bank_bytes + b < at_end.i.bytes; ++b) {
          const int64_t value = at_end.registered(source + k, b);
          row->sum += value;
          row->squares += value * value;
        }
      };
      more_steps(m.bank_bytes);
    }
    for (int64_t k = 0; k < words(i.bytes); ++k) {
      ModelStep& one = step();
      const int64_t table = i.source2 + 8 * k;
      reads(one, source + k);
      for (int64_t w = 0; w < 8; ++w) reads(one, table + w);
      writes(one, target + k);
      one.effect = [=, at_end = ModelContext(*this)] {
        const int64_t width = at_end.m.bank_bytes;
        const auto number = [&](int64_t at) {  // a float that begins at this byte of the table
          float value;
          std::memcpy(&value, &at_end.byte(table, at), 4);
          return value;
        };
        const float n = static_cast<float>(at_end.i.bytes);
        const float spread = static_cast<float>(at_end.i.bytes * row->squares - row->sum * row->sum);
        const float variance = spread / static_cast<float>(int64_t{at_end.i.bytes} * at_end.i.bytes);
        const float factor = 1 / std::sqrt(variance + at_end.s.vector_registers.scale_b);
        std::vector<int8_t> results(width);
        for (int64_t b = 0; b < width && k * width + b < at_end.i.bytes; ++b) {
          const float centred =
              static_cast<float>(at_end.registered(source + k, b)) - static_cast<float>(row->sum) / n;
          results[b] =
              rounded(centred * factor * number(4 * b) + number(4 * (width + b)), at_end.s.vector_registers);
        }
        for (int64_t b = 0; b < width; ++b) at_end.byte(target + k, b) = results[b];
      };
      more_steps(m.bank_bytes);
    }
  }
}

}  // namespace tuner::npu::testing
