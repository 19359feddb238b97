void f(float* y) { y[0] = SHIFT; }  // %RANGE% SHIFT sh -8:8:4
