/* abacus_device.h: the device "Abacus", as an interpreter in C99 without dependencies.
 *
 * A small vector machine: 32 registers of LANES floats, nested counted loops, and memory that it shares with
 * the host. A program is text, one instruction a line:
 *
 *   abacus 1 lanes 8 args 3      the first line: version, lanes of a register, number of arguments
 *   loop 64                      repeats up to the matching `end`; the counter of the outermost loop is c0
 *   set r0 0                     every lane
 *   load r1 arg1 1 0 128*c0      lane l = arg1[0 + 128*c0 + 1*l]; stride 0 reads one element into all lanes
 *   store r1 arg2 0 64*c0        arg2[0 + 64*c0 + l] = lane l
 *   add r2 r0 r1                 also sub, mul, min, max
 *   fma r0 r1 r2                 r0 = r0 + r1 * r2
 *   move r0 r1
 *   end
 *
 * An address is a constant and any number of COEFFICIENT*cN. Nothing is checked while a program runs: the
 * host's memory is as safe as the program is right.
 */
#ifndef ABACUS_DEVICE_H_
#define ABACUS_DEVICE_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ABACUS_REGISTERS = 32, ABACUS_MAX_LANES = 64, ABACUS_MAX_LOOPS = 16 };

typedef enum {
  ABACUS_LOOP,
  ABACUS_END,
  ABACUS_SET,
  ABACUS_LOAD,
  ABACUS_STORE,
  ABACUS_MOVE,
  ABACUS_ADD,
  ABACUS_SUB,
  ABACUS_MUL,
  ABACUS_MIN,
  ABACUS_MAX,
  ABACUS_FMA
} abacus_operation;

typedef struct {
  abacus_operation operation;
  int a, b, c;           /* registers; of load and store b is the argument */
  float value;           /* set */
  int64_t extent, other; /* loop: how often; the index of its end, and of the loop */
  int64_t stride, base;  /* load, store */
  int64_t coefficients[ABACUS_MAX_LOOPS];
} abacus_instruction;

typedef struct {
  int lanes, args;
  int64_t size;
  abacus_instruction* code;
} abacus_program;

static inline void abacus_free(abacus_program* p) {
  free(p->code);
  memset(p, 0, sizeof *p);
}

/* The rest of a line as an address. 0: it is none. */
static inline int abacus_address(const char* text, int depth, abacus_instruction* out) {
  int used = 0;
  long long base = 0;
  if (sscanf(text, "%lld%n", &base, &used) != 1) return 0;
  out->base = base;
  for (text += used;; text += used) {
    long long coefficient = 0;
    int counter = -1;
    while (*text == ' ') ++text;
    if (*text == '\0') return 1;
    if (sscanf(text, "%lld*c%d%n", &coefficient, &counter, &used) != 2 || counter < 0 || counter >= depth)
      return 0;
    out->coefficients[counter] += coefficient;
  }
}

static inline int abacus_registers(const abacus_instruction* i, int count) {
  const int r[3] = {i->a, i->b, i->c};
  for (int k = 0; k < count; ++k)
    if (r[k] < 0 || r[k] >= ABACUS_REGISTERS) return 0;
  return 1;
}

/* One instruction. 0: it is none, or it names what the machine does not have. */
static inline int abacus_instruction_of(const char* line, const abacus_program* p, int depth,
                                        abacus_instruction* out) {
  static const struct {
    const char* name;
    abacus_operation operation;
  } kThree[] = {{"add", ABACUS_ADD}, {"sub", ABACUS_SUB}, {"mul", ABACUS_MUL},
                {"min", ABACUS_MIN}, {"max", ABACUS_MAX}, {"fma", ABACUS_FMA}};
  char word[16];
  int used = 0;
  long long number = 0;
  memset(out, 0, sizeof *out);
  if (sscanf(line, "%15s%n", word, &used) != 1) return 0;
  line += used;
  if (strcmp(word, "loop") == 0) {
    out->operation = ABACUS_LOOP;
    if (sscanf(line, "%lld", &number) != 1 || number < 1) return 0;
    out->extent = number;
    return depth < ABACUS_MAX_LOOPS;
  }
  if (strcmp(word, "end") == 0) {
    out->operation = ABACUS_END;
    return depth > 0;
  }
  if (strcmp(word, "set") == 0) {
    out->operation = ABACUS_SET;
    return sscanf(line, " r%d %f", &out->a, &out->value) == 2 && abacus_registers(out, 1);
  }
  if (strcmp(word, "move") == 0) {
    out->operation = ABACUS_MOVE;
    return sscanf(line, " r%d r%d", &out->a, &out->b) == 2 && abacus_registers(out, 2);
  }
  if (strcmp(word, "load") == 0 || strcmp(word, "store") == 0) {
    out->operation = word[0] == 'l' ? ABACUS_LOAD : ABACUS_STORE;
    out->stride = 1;
    if (sscanf(line, " r%d arg%d%n", &out->a, &out->b, &used) != 2) return 0;
    line += used;
    if (out->operation == ABACUS_LOAD) {
      if (sscanf(line, " %lld%n", &number, &used) != 1) return 0;
      out->stride = number;
      line += used;
    }
    return abacus_registers(out, 1) && out->b >= 0 && out->b < p->args && abacus_address(line, depth, out);
  }
  for (size_t k = 0; k < sizeof kThree / sizeof kThree[0]; ++k) {
    if (strcmp(word, kThree[k].name) != 0) continue;
    out->operation = kThree[k].operation;
    return sscanf(line, " r%d r%d r%d", &out->a, &out->b, &out->c) == 3 && abacus_registers(out, 3);
  }
  return 0;
}

/* Reads a program. 0 and *out, to be freed by abacus_free(); else the number of the line that is wrong. */
static inline int64_t abacus_parse(const char* text, abacus_program* out) {
  int64_t open[ABACUS_MAX_LOOPS], line_number = 0, capacity = 0;
  int depth = 0;
  memset(out, 0, sizeof *out);
  while (*text != '\0') {
    char line[256];
    const size_t length = strcspn(text, "\n");
    ++line_number;
    if (length >= sizeof line) goto wrong;
    memcpy(line, text, length);
    line[length] = '\0';
    text += length + (text[length] == '\n');
    if (line_number == 1) {
      if (sscanf(line, "abacus 1 lanes %d args %d", &out->lanes, &out->args) != 2 || out->lanes < 1 ||
          out->lanes > ABACUS_MAX_LANES || out->args < 1 || out->args > ABACUS_REGISTERS)
        goto wrong;
      continue;
    }
    if (out->size == capacity) {
      capacity = capacity == 0 ? 64 : 2 * capacity;
      abacus_instruction* more =
          (abacus_instruction*)realloc(out->code, (size_t)capacity * sizeof(abacus_instruction));
      if (more == NULL) goto wrong;
      out->code = more;
    }
    abacus_instruction* i = &out->code[out->size];
    if (!abacus_instruction_of(line, out, depth, i)) goto wrong;
    if (i->operation == ABACUS_LOOP) open[depth++] = out->size;
    if (i->operation == ABACUS_END) {
      i->other = open[--depth];
      out->code[i->other].other = out->size;
    }
    ++out->size;
  }
  if (line_number > 0 && depth == 0) return 0;
wrong:
  abacus_free(out);
  return line_number > 0 ? line_number : 1;
}

static inline void abacus_run(const abacus_program* p, void* const* args) {
  float registers[ABACUS_REGISTERS][ABACUS_MAX_LANES];
  int64_t counters[ABACUS_MAX_LOOPS];
  const int lanes = p->lanes;
  int depth = 0;
  for (int64_t at = 0; at < p->size; ++at) {
    const abacus_instruction* i = &p->code[at];
    float *a = registers[i->a], *b = registers[i->b], *c = registers[i->c];
    int64_t address = i->base;
    switch (i->operation) {
      case ABACUS_LOOP:
        counters[depth++] = 0;
        break;
      case ABACUS_END:
        if (++counters[depth - 1] < p->code[i->other].extent)
          at = i->other;
        else
          --depth;
        break;
      case ABACUS_SET:
        for (int l = 0; l < lanes; ++l) a[l] = i->value;
        break;
      case ABACUS_LOAD: {
        for (int d = 0; d < depth; ++d) address += i->coefficients[d] * counters[d];
        const float* from = (const float*)args[i->b] + address;
        for (int l = 0; l < lanes; ++l) a[l] = from[l * i->stride];
        break;
      }
      case ABACUS_STORE: {
        for (int d = 0; d < depth; ++d) address += i->coefficients[d] * counters[d];
        memcpy((float*)args[i->b] + address, a, (size_t)lanes * sizeof(float));
        break;
      }
      case ABACUS_MOVE:
        for (int l = 0; l < lanes; ++l) a[l] = b[l];
        break;
      case ABACUS_ADD:
        for (int l = 0; l < lanes; ++l) a[l] = b[l] + c[l];
        break;
      case ABACUS_SUB:
        for (int l = 0; l < lanes; ++l) a[l] = b[l] - c[l];
        break;
      case ABACUS_MUL:
        for (int l = 0; l < lanes; ++l) a[l] = b[l] * c[l];
        break;
      case ABACUS_MIN:
        for (int l = 0; l < lanes; ++l) a[l] = b[l] < c[l] ? b[l] : c[l];
        break;
      case ABACUS_MAX:
        for (int l = 0; l < lanes; ++l) a[l] = b[l] > c[l] ? b[l] : c[l];
        break;
      case ABACUS_FMA:
        for (int l = 0; l < lanes; ++l) a[l] += b[l] * c[l];
        break;
    }
  }
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ABACUS_DEVICE_H_ */
