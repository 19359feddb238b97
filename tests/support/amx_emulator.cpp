#include "tests/support/amx_emulator.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#endif

namespace tuner::testing {
namespace {

struct {
  std::atomic<int64_t> configurations, releases, zeros, loads, stores, products;
} done;

}  // namespace

AmxCounts amx_counts() {
  return {done.configurations, done.releases, done.zeros, done.loads, done.stores, done.products};
}

#if defined(__x86_64__)
namespace {

constexpr int kTiles = 8, kMostRows = 16, kRowBytes = 64;

struct Tile {
  int rows, row_bytes;
  unsigned char bytes[kMostRows][kRowBytes];
};
struct Registers {
  bool configured;
  Tile tiles[kTiles];
};
thread_local Registers registers;

[[noreturn]] void fault(const char* what) {
  const char* parts[] = {"AMX emulator: ", what, "\n"};
  for (const char* part : parts)
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::_exit(86);
}

// One instruction in VEX form, map 0F 38.
struct Instruction {
  unsigned char opcode = 0;
  int prefix = 0;  // 0: none, 1: 66, 2: F3, 3: F2
  int reg = 0, rm = 0, vvvv = 0;
  bool is_register = false;
  int64_t base = 0, row_step = 0;  // of memory: address, and index register times scale
  int64_t bytes = 0;               // its length
};

int64_t value_of(const gregset_t& gregs, int number) {
  constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return gregs[kOrder[number]];
}

int64_t displacement(const unsigned char*& at, int bytes) {
  if (bytes == 0) return 0;
  if (bytes == 1) return static_cast<signed char>(*at++);
  int32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

// ModRM (at `at`), SIB and displacement.
void decode_memory(const gregset_t& gregs, const unsigned char* code, const unsigned char* at, bool x, bool b,
                   Instruction& i) {
  const int mod = *at >> 6, rm = *at & 7;
  ++at;
  const int displacement_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (rm == 4) {
    const int scale = *at >> 6, index = ((*at >> 3) & 7) | (x ? 8 : 0), base = *at & 7;
    ++at;
    i.row_step =
        index == 4 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value_of(gregs, index)) << scale);
    if (base == 5 && mod == 0)
      i.base = displacement(at, 4);
    else
      i.base = value_of(gregs, base | (b ? 8 : 0)) + displacement(at, displacement_bytes);
  } else if (rm == 5 && mod == 0) {
    const int64_t offset = displacement(at, 4);
    i.base =
        reinterpret_cast<int64_t>(at) + offset;  // from the next instruction: none of these has an immediate
  } else {
    i.base = value_of(gregs, rm | (b ? 8 : 0)) + displacement(at, displacement_bytes);
  }
  i.bytes = at - code;
}

// False when it is not of this form.
bool decode(const unsigned char* code, const gregset_t& gregs, Instruction& i) {
  if (code[0] != 0xc4 || (code[1] & 31) != 2 || (code[2] & 0x84) != 0) return false;  // map 2, W and L 0
  const bool r = (code[1] & 0x80) == 0, x = (code[1] & 0x40) == 0, b = (code[1] & 0x20) == 0;
  i.prefix = code[2] & 3;
  i.vvvv = (~code[2] >> 3) & 15;
  i.opcode = code[3];
  if (i.opcode != 0x49 && i.opcode != 0x4b && i.opcode != 0x5c && i.opcode != 0x5e) return false;
  i.reg = ((code[4] >> 3) & 7) | (r ? 8 : 0);
  i.is_register = code[4] >> 6 == 3;
  i.rm = (code[4] & 7) | (b ? 8 : 0);
  i.bytes = 5;
  if (!i.is_register) decode_memory(gregs, code, code + 4, x, b, i);
  return true;
}

Tile& tile(int number) {
  if (!registers.configured) fault("a tile instruction before ldtilecfg");
  if (number >= kTiles) fault("a register beyond tmm7");
  Tile& t = registers.tiles[number];
  if (t.rows == 0 || t.row_bytes == 0) fault("a register that the configuration leaves out");
  return t;
}

void configure(const unsigned char* config) {
  if (config[0] > 1) fault("ldtilecfg: no such palette");
  registers = {};
  if (config[0] == 0) return;
  if (config[1] != 0) fault("ldtilecfg: start_row is not 0");
  for (int i = 2; i < 16; ++i)
    if (config[i] != 0) fault("ldtilecfg: reserved bytes are not 0");
  for (int t = 0; t < 16; ++t) {
    const int row_bytes = config[16 + 2 * t] | config[17 + 2 * t] << 8, rows = config[48 + t];
    if (t >= kTiles && (row_bytes != 0 || rows != 0)) fault("ldtilecfg: a register beyond tmm7");
    if (row_bytes > kRowBytes || rows > kMostRows) fault("ldtilecfg: a tile larger than 16 rows of 64 bytes");
    if ((row_bytes == 0) != (rows == 0)) fault("ldtilecfg: a tile of rows without bytes, or the other way");
    if (t < kTiles) registers.tiles[t].rows = rows, registers.tiles[t].row_bytes = row_bytes;
  }
  registers.configured = true;
}

void clear(Tile& t) { std::memset(t.bytes, 0, sizeof t.bytes); }

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

template <class T>
T element(const Tile& t, int row, int at) {
  T value;
  std::memcpy(&value, &t.bytes[row][static_cast<size_t>(at) * sizeof(T)], sizeof value);
  return value;
}
template <class T>
void set(Tile& t, int row, int at, T value) {
  std::memcpy(&t.bytes[row][static_cast<size_t>(at) * sizeof(T)], &value, sizeof value);
}

float from_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return flushed(value);
}
float from_float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VALF : NAN;
  const int scale = exponent == 0 ? -24 : exponent - 25;
  return sign * std::ldexp(static_cast<float>(mantissa + (exponent == 0 ? 0 : 1024)), scale);
}

template <float (*kConvert)(uint16_t)>
void pairs(Tile& c, const Tile& a, const Tile& b) {
  for (int m = 0; m < c.rows; ++m)
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < a.row_bytes / 4; ++k) {
        const auto product = [&](int of, float sum) {
          const float x = kConvert(element<uint16_t>(a, m, 2 * k + of));
          return flushed(std::fma(x, kConvert(element<uint16_t>(b, k, 2 * n + of)), sum));
        };
        even = product(0, even), odd = product(1, odd);
      }
      const float old = flushed(element<float>(c, m, n));
      set(c, m, n, flushed(old + flushed(even + odd)));
    }
}

template <class A, class B>
void bytes(Tile& c, const Tile& a, const Tile& b) {
  for (int m = 0; m < c.rows; ++m)
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      auto sum = element<uint32_t>(c, m, n);
      for (int k = 0; k < a.row_bytes; ++k)
        sum += static_cast<uint32_t>(int32_t{element<A>(a, m, k)} *
                                     int32_t{element<B>(b, k / 4, 4 * n + k % 4)});
      set(c, m, n, sum);
    }
}

void product(const Instruction& i) {
  if (!i.is_register) fault("a product with an operand in memory");
  if (i.reg == i.rm || i.reg == i.vvvv || i.rm == i.vvvv) fault("a product with one register twice");
  Tile& c = tile(i.reg);
  const Tile &a = tile(i.rm), &b = tile(i.vvvv);
  if (c.row_bytes % 4 != 0 || a.row_bytes % 4 != 0) fault("a product of rows that are not whole groups");
  if (c.rows != a.rows || a.row_bytes / 4 != b.rows || c.row_bytes != b.row_bytes)
    fault("a product of tiles whose shapes do not fit");
  using Signed = signed char;
  using Unsigned = unsigned char;
  if (i.opcode == 0x5c && i.prefix == 2) return pairs<from_bfloat16>(c, a, b);
  if (i.opcode == 0x5c && i.prefix == 3) return pairs<from_float16>(c, a, b);
  if (i.opcode == 0x5c) fault("an unknown product");
  if (i.prefix == 3) return bytes<Signed, Signed>(c, a, b);
  if (i.prefix == 2) return bytes<Signed, Unsigned>(c, a, b);
  if (i.prefix == 1) return bytes<Unsigned, Signed>(c, a, b);
  bytes<Unsigned, Unsigned>(c, a, b);
}

// 49: configuration, release, zero.
void manage(const Instruction& i) {
  if (i.is_register && i.prefix == 0) {
    if (i.reg != 0 || i.rm != 0) fault("an unknown tile instruction");
    registers = {};
    ++done.releases;
  } else if (i.is_register && i.prefix == 3) {
    clear(tile(i.reg));
    ++done.zeros;
  } else if (!i.is_register && i.prefix == 0) {
    configure(reinterpret_cast<const unsigned char*>(i.base));
    ++done.configurations;
  } else {
    fault("an unknown tile instruction");
  }
}

// 4B: rows between memory and a register.
void move(const Instruction& i) {
  if (i.is_register || i.prefix == 0) fault("an unknown tile instruction");
  Tile& t = tile(i.reg);
  const bool loads = i.prefix != 2;
  if (loads) clear(t);
  for (int row = 0; row < t.rows; ++row) {
    auto* memory = reinterpret_cast<unsigned char*>(i.base + row * i.row_step);
    if (loads)
      std::memcpy(t.bytes[row], memory, static_cast<size_t>(t.row_bytes));
    else
      std::memcpy(memory, t.bytes[row], static_cast<size_t>(t.row_bytes));
  }
  ++(loads ? done.loads : done.stores);
}

void on_illegal_instruction(int number, siginfo_t*, void* context) {
  gregset_t& gregs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Instruction i;
  if (!decode(reinterpret_cast<const unsigned char*>(gregs[REG_RIP]), gregs, i)) {
    ::signal(number, SIG_DFL);  // runs it again, and ends as without us
    return;
  }
  if (i.opcode == 0x49) {
    manage(i);
  } else if (i.opcode == 0x4b) {
    move(i);
  } else {
    product(i);
    ++done.products;
  }
  gregs[REG_RIP] += i.bytes;
}

// What the CPU has, and the system lets this process use.
bool hardware_runs_it() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kAll = 1u << 22 | 1u << 24 | 1u << 25;  // amx-bf16, amx-tile, amx-int8
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return (d & kAll) == kAll && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

std::string run_amx_here() {
  static const bool on_hardware = hardware_runs_it();
  if (on_hardware) return "on the hardware";
  struct sigaction action = {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGILL, &action, nullptr);
  return "emulated";
}

#else

std::string run_amx_here() { return ""; }

#endif

}  // namespace tuner::testing
