// %RANGE% A 1:4:1
void f(float* y) { y[0] = A; }
