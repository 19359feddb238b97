// %RANGE% TILE t 8:64:8
#ifndef TILE
#define TILE 16
#endif
void scale(const float* x, float* y, int n) { for (int i = 0; i < n; i += TILE) for (int k = i; k < i + TILE; ++k) y[k] = 2 * x[k]; }
