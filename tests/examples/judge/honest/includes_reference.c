// gemm: right
// Calls the reference, whose text it includes.
#include "gemm_plain.c"
