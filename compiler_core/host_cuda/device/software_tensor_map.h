// Tensor maps in software, after the manuals of the CUDA driver (cuTensorMapEncodeTiled,
// cuTensorMapEncodeIm2col) and of PTX ("Tensors", "Swizzling modes"): what the driver encodes, with the
// conditions that it asks for, and what a copy of a box does.
//
// Written a second time beside compiler_core/base/tensor_map.cpp and compiler_core/emulator/fetch.cpp, so
// that they can be held against it. Includes nothing of ours: the compiler that tests start reads it, too
// (host_cuda_shim.h).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace software_map {

// In the place of a CUtensorMap, which has 128 bytes; nobody but this file reads it.
struct Map {
  uint32_t magic;
  uint8_t rank, element_bytes, swizzle, fills_nan, is_im2col, type;
  int16_t lower[3], upper[3];
  uint16_t box[5], channels, pixels;
  uint8_t steps[5];
  uint64_t address;
  uint64_t strides[4];  // bytes
  uint32_t extents[5];  // less one
};
static_assert(sizeof(Map) <= 128, "a tensor map has 128 bytes");
constexpr uint32_t kMagic = 0x7e4501ab;
constexpr int kSuccess = 0, kInvalidValue = 1;

// Bytes of a CUtensorMapDataType; 0: none that is known here.
inline int bytes_of_type(int type) {
  constexpr int kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < 13 ? kBytes[type] : 0;
}
inline bool is_float_type(int type) { return type >= 6; }

// What both functions ask for. `why` names the first condition that does not hold.
inline int encode_array(Map& map, int type, uint32_t rank, const void* address, const uint64_t* extents,
                        const uint64_t* strides, const uint32_t* steps, uint64_t inner, int interleave,
                        int swizzle, int l2, int fill, const char** why) {
  const auto refused = [&](const char* what) {
    *why = what;
    return kInvalidValue;
  };
  memset(&map, 0, sizeof map);
  map.magic = kMagic, map.rank = (uint8_t)rank, map.type = (uint8_t)type;
  map.element_bytes = (uint8_t)bytes_of_type(type), map.address = (uint64_t)address;
  if (map.element_bytes == 0) return refused("tensorDataType");
  if (rank < 1 || rank > 5) return refused("tensorRank");
  if (map.address % 16 != 0) return refused("globalAddress");
  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] < 1 || extents[d] > uint64_t{1} << 32) return refused("globalDim");
    map.extents[d] = (uint32_t)(extents[d] - 1);
    if (steps[d] < 1 || steps[d] > 8) return refused("elementStrides");
    map.steps[d] = (uint8_t)steps[d];
  }
  for (uint32_t d = 0; d + 1 < rank; ++d) {
    if (strides[d] % 16 != 0 || strides[d] >= uint64_t{1} << 40) return refused("globalStrides");
    map.strides[d] = strides[d];
  }
  if (interleave != 0) return refused("interleave");
  if (inner * map.element_bytes % 16 != 0) return refused("boxDim[0]");
  if (swizzle < 0 || swizzle > 3) return refused("swizzle");
  map.swizzle = (uint8_t)swizzle;
  if (swizzle > 0 && inner * map.element_bytes > (16u << swizzle)) return refused("boxDim[0] beyond swizzle");
  if (l2 < 0 || l2 > 3) return refused("l2Promotion");
  if (fill < 0 || fill > 1 || (fill == 1 && !is_float_type(type))) return refused("oobFill");
  map.fills_nan = (uint8_t)fill;
  return kSuccess;
}

inline int encode_tiled(void* out, int type, uint32_t rank, const void* address, const uint64_t* extents,
                        const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                        int swizzle, int l2, int fill, const char** why) {
  Map map;
  *why = "";
  if ((uintptr_t)out % 64 != 0) return *why = "tensorMap", kInvalidValue;
  if (const int code = encode_array(map, type, rank, address, extents, strides, steps, box[0], interleave,
                                    swizzle, l2, fill, why);
      code != kSuccess)
    return code;
  for (uint32_t d = 0; d < rank; ++d) {
    if (box[d] < 1 || box[d] > 256) return *why = "boxDim", kInvalidValue;
    map.box[d] = (uint16_t)box[d];
  }
  memset(out, 0, 128);
  memcpy(out, &map, sizeof map);
  return kSuccess;
}

inline int encode_im2col(void* out, int type, uint32_t rank, const void* address, const uint64_t* extents,
                         const uint64_t* strides, const int* lower, const int* upper, uint32_t channels,
                         uint32_t pixels, const uint32_t* steps, int interleave, int swizzle, int l2,
                         int fill, const char** why) {
  Map map;
  *why = "";
  if ((uintptr_t)out % 64 != 0) return *why = "tensorMap", kInvalidValue;
  if (rank < 3) return *why = "tensorRank", kInvalidValue;
  if (const int code = encode_array(map, type, rank, address, extents, strides, steps, channels, interleave,
                                    swizzle, l2, fill, why);
      code != kSuccess)
    return code;
  const int most = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
  for (uint32_t d = 0; d + 2 < rank; ++d) {
    if (lower[d] < -most || lower[d] >= most) return *why = "pixelBoxLowerCorner", kInvalidValue;
    if (upper[d] < -most || upper[d] >= most) return *why = "pixelBoxUpperCorner", kInvalidValue;
    if ((int64_t)extents[d + 1] + upper[d] - lower[d] < 1) return *why = "pixelBox is empty", kInvalidValue;
    map.lower[d] = (int16_t)lower[d], map.upper[d] = (int16_t)upper[d];
  }
  if (channels < 1 || channels > 256) return *why = "channelsPerPixel", kInvalidValue;
  if (pixels < 1 || pixels > 1024) return *why = "pixelsPerColumn", kInvalidValue;
  map.is_im2col = 1, map.channels = (uint16_t)channels, map.pixels = (uint16_t)pixels;
  memset(out, 0, 128);
  memcpy(out, &map, sizeof map);
  return kSuccess;
}

// Elements of a box in one dimension: each step-th of so many.
inline int side(const Map& map, int d) {
  return d == 0 ? map.box[0] : (map.box[d] + map.steps[d] - 1) / map.steps[d];
}
inline int64_t box_elements(const Map& map) {
  int64_t n = 1;
  for (int d = 0; d < map.rank; ++d) n *= side(map, d);
  return n;
}
inline int64_t box_bytes(const Map& map) { return box_elements(map) * map.element_bytes; }

// Copies the box at `coordinates` (innermost first) to `shared + at`, an address of shared memory that begins
// at a multiple of 1024; bits of the address decide where a 16-byte unit goes. False: the box does not begin
// where a box may, or it is of no map.
inline bool copy_box(const Map& map, const int* coordinates, unsigned char* shared, size_t at) {
  if (map.magic != kMagic || map.is_im2col != 0 || at % 128 != 0) return false;
  if (map.swizzle > 0 && at % (128u << map.swizzle) != 0) return false;
  const int64_t count = box_elements(map);
  for (int64_t e = 0; e < count; ++e) {
    int64_t rest = e;
    uint64_t from = map.address;
    bool inside = true;
    for (int d = 0; d < map.rank; ++d) {
      const int64_t c = coordinates[d] + rest % side(map, d) * (d == 0 ? 1 : map.steps[d]);
      rest /= side(map, d);
      inside = inside && c >= 0 && c <= (int64_t)map.extents[d];
      from += (uint64_t)c * (d == 0 ? map.element_bytes : map.strides[d - 1]);
    }
    size_t to = at + (size_t)e * map.element_bytes;
    to ^= (to >> 7 & ((1u << map.swizzle) - 1)) << 4;  // 32, 64, 128 bytes: one, two, three bits
    if (inside)
      memcpy(shared + to, (const void*)from, map.element_bytes);
    else
      memset(shared + to, map.fills_nan != 0 ? 0xff : 0, map.element_bytes);
  }
  return true;
}

}  // namespace software_map
