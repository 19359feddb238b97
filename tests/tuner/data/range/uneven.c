// The end is not a step from the start: 2, 5, 8.
// %RANGE%   STEP   s   2:10:3
#ifndef STEP
#define STEP 4
#endif
void f(float* y) { y[0] = STEP; }
